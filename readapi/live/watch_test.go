package live

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer/status"
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

// TestWatchContinuesFromAnyVersionOfTheWindow verifies that a watch from a version of the cluster receives
// all later events in order, with the versions of the cluster.
func TestWatchContinuesFromAnyVersionOfTheWindow(t *testing.T) {
	s := newFixture(t, Options{})
	first := s.writeEnvironment("w0", "a")
	s.writeEnvironment("w1", "a")
	s.writeEnvironment("w0", "b")
	s.deleteEnvironment("w1")
	last := s.writeEnvironment("w2", "a")
	s.awaitVersion(last)
	watch := s.watch(environmentsPath + "?watch=true&resourceVersion=" + first.GetResourceVersion())
	before := first.GetResourceVersion()
	for _, want := range []string{"ADDED w1", "MODIFIED w0", "DELETED w1", "ADDED w2"} {
		e, _ := watch.next()
		if got := e.Type + " " + e.Object.Metadata.Name; got != want ||
			parseVersion(e.Object.Metadata.ResourceVersion) <= parseVersion(before) {
			t.Errorf("the watch sent %s at %s, want %s after %s", got, e.Object.Metadata.ResourceVersion,
				want, before)
		}
		before = e.Object.Metadata.ResourceVersion
	}
	if before != last.GetResourceVersion() {
		t.Errorf("the last event has version %s, want %s as in the cluster", before, last.GetResourceVersion())
	}
}

// TestWatchFromBeforeTheWindowIsExpired checks that watches from forgotten versions get 410.
func TestWatchFromBeforeTheWindowIsExpired(t *testing.T) {
	s := newFixture(t, Options{History: 2})
	first := s.writeEnvironment("w", "0")
	var last *unstructured.Unstructured
	for i := range 8 {
		last = s.writeEnvironment("w", fmt.Sprint(i+1))
	}
	s.awaitVersion(last)
	watch := s.watch(environmentsPath + "?watch=true&resourceVersion=" + first.GetResourceVersion())
	if e, _ := watch.next(); e.Type != "ERROR" || e.Object.Code != http.StatusGone {
		t.Errorf("the watch sent %+v, want ERROR with code 410", e)
	}
	watch = s.watch(environmentsPath + "?watch=true&resourceVersion=" + last.GetResourceVersion())
	s.writeEnvironment("w", "more")
	if e, _ := watch.next(); e.Type != "MODIFIED" {
		t.Errorf("the watch sent %+v, want MODIFIED", e)
	}
}

// TestDeletedType verifies that after the deletion of its definition, a type is no longer served from the
// cache.
func TestDeletedType(t *testing.T) {
	s := newFixture(t, Options{})
	informer := s.server.cacheOf(environments.GroupResource()).informer
	s.must(s.cluster.Client().Resource(crd.GVR).Delete(t.Context(), "environments."+demoGroup, deleteOptions))
	for {
		current, changed := informer.StatusChange()
		if current.State == status.Pending {
			break
		}
		<-changed
	}
	if w := get(t, s.server, environmentsPath+"?resourceVersion=0"); w.Code != http.StatusNotFound ||
		w.Header().Get(ServedHeader) != servedByCluster {
		t.Errorf("list of a deleted type = %d by %q, want 404 by the cluster: %s", w.Code,
			w.Header().Get(ServedHeader), w.Body)
	}
}
