package lifecycle_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/integration/harness"
)

// TestIdle: two hundred types are asked for once each, and synced they ask for nothing any more, but to go on
// with their watches where the server has ended them.
func TestIdle(t *testing.T) {
	const kinds = 200
	var l link
	config, requests := harness.Counting(l.through(harness.Config(t)))
	s := newScene(t, dynamicinformer.Options{Config: config}, config)
	definitions := s.installMany(kinds)
	s.awaitMany(definitions)
	requests.Reset()

	journals := map[string]*journal{}
	for _, d := range definitions {
		_, journals[d.GetName()] = s.follow(resourceOf(d))
	}
	if _, err := s.factory.WaitForSync(s.ctx); err != nil {
		t.Fatal(err)
	}
	for _, d := range definitions {
		s.create(d, "a")
		journals[d.GetName()].expect("add a")
	}
	want := map[harness.Request]int{}
	for _, d := range definitions {
		want[watchOf(d)] = 2 // one that lists, or is refused without watch-list, and one that goes on
		if !harness.Has(t, harness.WatchList) {
			want[harness.Request{Verb: http.MethodGet, Path: watchOf(d).Path}] = 1
		}
	}
	if diff := cmp.Diff(want, requests.All()); diff != "" {
		t.Errorf("requests until all were followed (-want +got):\n%s", diff)
	}

	requests.Reset()
	l.faults.EndWatches()
	harness.Eventually(t, func(context.Context) error {
		all := requests.All()
		for _, d := range definitions {
			if all[watchOf(d)] == 0 {
				return fmt.Errorf("%s has not been watched again", d.GetName())
			}
		}
		return nil
	})
	// What is seen now came with the watches that were renewed.
	for _, d := range definitions {
		s.create(d, "b")
		journals[d.GetName()].expect("add b")
	}
	checks := 0 // the factory and its source each ask once whether the server was restored from a backup
	for request, n := range requests.All() {
		switch {
		case request.Verb == http.MethodGet:
			checks += n
		case request.Verb != "WATCH" || n > 1:
			t.Errorf("%d requests %v while everything was synced", n, request)
		}
	}
	if checks > 2 {
		t.Errorf("%d lists while everything was synced, want at most 2", checks)
	}
}

func watchOf(definition *unstructured.Unstructured) harness.Request {
	gvr := resourceOf(definition)
	return harness.Request{Verb: "WATCH", Path: fmt.Sprintf("/apis/%s/v1/%s", gvr.Group, gvr.Resource)}
}

// installMany creates definitions side by side, and has them deleted when the test ends. Nothing waits for them.
func (s *scene) installMany(kinds int) []*unstructured.Unstructured {
	s.Helper()
	group := harness.Group(s)
	var definitions []*unstructured.Unstructured
	for k := range kinds {
		d := harness.NewCRD(group, fmt.Sprintf("Kind%c%c", 'A'+k/26, 'A'+k%26))
		d.SetLabels(map[string]string{"many": group})
		definitions = append(definitions, d)
	}
	work := make(chan *unstructured.Unstructured, kinds)
	for _, d := range definitions {
		work <- d
	}
	close(work)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() { // ends with the work
			for d := range work {
				if _, err := s.admin.Resource(crd.GVR).Create(s.ctx, d, metav1.CreateOptions{}); err != nil {
					s.Error(err)
				}
			}
		})
	}
	writers.Wait()
	s.Cleanup(func() {
		all := metav1.ListOptions{LabelSelector: "many=" + group}
		if err := s.admin.Resource(crd.GVR).DeleteCollection(s.ctx, metav1.DeleteOptions{}, all); err != nil {
			s.Error(err)
		}
		harness.Eventually(s, func(ctx context.Context) error {
			left, err := s.admin.Resource(crd.GVR).List(ctx, all)
			if err == nil && len(left.Items) > 0 {
				err = fmt.Errorf("%d definitions are left", len(left.Items))
			}
			return err
		})
	})
	return definitions
}

// awaitMany waits until all types can be listed.
func (s *scene) awaitMany(definitions []*unstructured.Unstructured) {
	s.Helper()
	for _, d := range definitions {
		harness.Eventually(s, func(ctx context.Context) error {
			_, err := s.admin.Resource(resourceOf(d)).List(ctx, metav1.ListOptions{Limit: 1})
			return err
		})
	}
}
