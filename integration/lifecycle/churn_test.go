package lifecycle_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
)

// TestChurn installs and deletes definitions repeatedly. Each time, the objects must appear and disappear.
// Finally, no resources may leak.
func TestChurn(t *testing.T) {
	const kinds, cycles = 5, 3
	s := newScene(t, dynamicinformer.Options{}, nil)
	group := harness.Group(t)
	var definitions []*unstructured.Unstructured
	var informers []*dynamicinformer.Informer
	var journals []*journal
	for k := range kinds {
		definition := harness.NewCRD(group, fmt.Sprintf("Kind%c", 'A'+k))
		i, j := s.follow(resourceOf(definition))
		definitions, informers, journals = append(definitions, definition), append(informers,
			i), append(journals, j)
	}
	cycle := func(incarnation int) {
		for _, d := range definitions {
			s.reinstall(d)
		}
		for _, d := range definitions {
			s.create(d, "a")
		}
		for _, j := range journals {
			j.expect("add a")
		}
		for k, d := range definitions {
			s.awaitSynced(informers[k], incarnation)
			s.uninstall(d)
		}
		for k, j := range journals {
			j.expect("delete a")
			s.await(informers[k], status.Pending, status.ReasonNotInstalled)
			s.expectEmpty(informers[k])
		}
	}
	cycle(1) // opens the connections
	before := runtime.NumGoroutine()
	for n := range cycles {
		cycle(n + 2)
	}
	for k, j := range journals {
		j.expectNothing()
		if status := informers[k].Status(); status.Incarnation != cycles+1 {
			t.Errorf("the status is %+v, want incarnation %d", status, cycles+1)
		}
	}
	harness.Eventually(t, func(context.Context) error {
		if now := runtime.NumGoroutine(); now > before {
			return fmt.Errorf("%d goroutines, %d after the first cycle", now, before)
		}
		return nil
	})
}
