package live

import (
	"net/http"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery/crd"
)

var environmentsPath = "/apis/" + demoGroup + "/v1/environments"

// parseVersion parses a resource version. It returns 0 if the text is invalid.
func parseVersion(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64)
	return n
}

// awaitVersion waits until the cache of a type has the version of an object.
func (f *fixture) awaitVersion(o *unstructured.Unstructured) {
	f.Helper()
	version := parseVersion(o.GetResourceVersion())
	informer := f.server.cacheOf(environments.GroupResource()).informer
	for {
		h := informer.History()
		if h.ResourceVersion >= version {
			return
		}
		select {
		case <-h.Next:
		case <-f.Context().Done():
			f.Fatal("timed out waiting for the cache to reach the version")
		}
	}
}

// TestRelistOfTheInformerExpiresWatches verifies that when the API server ends the informer's watch with 410,
// watches expire, because the changes before the next list are unordered.
func TestRelistOfTheInformerExpiresWatches(t *testing.T) {
	s := newFixture(t, Options{})
	o := s.writeEnvironment("w", "a")
	s.awaitVersion(o)
	watch := s.watch(environmentsPath + "?watch=true&resourceVersion=" + o.GetResourceVersion())
	o = o.DeepCopy()
	s.must(unstructured.SetNestedField(o.Object, "b", "spec", "stage"))
	s.must(s.cluster.Restore(o))
	if e, _ := watch.next(); e.Type != "ERROR" || e.Object.Code != http.StatusGone {
		t.Errorf("the watch sent %+v, want ERROR with code 410", e)
	}
	if e, more := watch.next(); more {
		t.Errorf("the watch continues with the event %+v, want its end", e)
	}
}

// TestRedefinitionEndsWatches verifies that when the definition of a type changes, its watches end.
func TestRedefinitionEndsWatches(t *testing.T) {
	s := newFixture(t, Options{})
	watch := s.watch(environmentsPath + "?watch=true&allowWatchBookmarks=true&resourceVersion=" +
		s.writeEnvironment("w", "a").GetResourceVersion())
	definition, err := s.cluster.Client().Resource(crd.GVR).Get(t.Context(), "environments."+demoGroup, getOptions)
	s.must(err)
	labelled := definition.DeepCopy()
	labelled.SetLabels(map[string]string{"no": "matter"})
	_, err = s.cluster.Client().Resource(crd.GVR).Update(t.Context(), labelled, updateOptions)
	s.must(err)
	definition, err = s.cluster.Client().Resource(crd.GVR).Get(t.Context(), "environments."+demoGroup, getOptions)
	s.must(err)
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	versions[0].(map[string]any)["additionalPrinterColumns"] = []any{map[string]any{"name": "Moon",
		"type": "string", "jsonPath": ".spec.region"}}
	s.must(unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"))
	_, err = s.cluster.Client().Resource(crd.GVR).Update(t.Context(), definition, updateOptions)
	s.must(err)
	for {
		if _, more := watch.next(); !more {
			break
		}
	}
}
