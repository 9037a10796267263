package lifecycle_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/integration/harness"
)

// TestIdle: what is synced asks for nothing any more, and has asked once for each type.
func TestIdle(t *testing.T) {
	const kinds = 30
	config, requests := harness.Counting(harness.Config(t))
	s := newScene(t, dynamicinformer.Options{Config: config}, nil)
	group := harness.Group(t)
	var definitions []*unstructured.Unstructured
	for k := range kinds {
		definitions = append(definitions, harness.NewCRD(group, fmt.Sprintf("Kind%c%c", 'A'+k/26, 'A'+k%26)))
	}
	harness.InstallCRDs(t, definitions...)
	var journals []*journal
	for _, d := range definitions {
		_, j := s.follow(resourceOf(d))
		journals = append(journals, j)
	}
	if _, err := s.factory.WaitForSync(s.ctx); err != nil {
		t.Fatal(err)
	}
	want := map[harness.Request]int{}
	for _, d := range definitions {
		gvr := resourceOf(d)
		want[harness.Request{Verb: "WATCH", Path: fmt.Sprintf("/apis/%s/v1/%s", gvr.Group, gvr.Resource)}] = 1
	}
	if diff := cmp.Diff(want, requests.All()); diff != "" {
		t.Errorf("requests until all were synced (-want +got):\n%s", diff)
	}

	requests.Reset()
	for k, d := range definitions {
		s.create(d, "a")
		journals[k].expect("add a")
	}
	if all := requests.All(); len(all) != 0 {
		t.Errorf("the factory sent %v while it was synced", all)
	}
}
