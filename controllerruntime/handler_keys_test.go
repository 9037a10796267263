package controllerruntime

import (
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// TestKeyHandlersAreKnown: nothing is decoded for a source that queues keys, everything for one with a
// predicate. Objects of the initial list have low priority.
func TestKeyHandlersAreKnown(t *testing.T) {
	for name, tt := range map[string]struct {
		predicates []predicate.Predicate
		decoded    bool
	}{
		"keys": {nil, false},
		"predicates": {[]predicate.Predicate{predicate.NewPredicateFuncs(
			func(o client.Object) bool { return o.GetAnnotations() == nil })}, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			server.Create(t, configMaps, configMap("web", "a"), configMap("web", "b"))
			c := newCache(t, server, cache.Options{}, Options{})
			start(t, c)
			queue := priorityqueue.New("test", func(o *priorityqueue.Opts[reconcile.Request]) {
				o.RateLimiter = workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()
			})
			defer queue.ShutDown()
			kind := source.Kind[client.Object](c, emptyForms()["unstructured"], &handler.EnqueueRequestForObject{},
				tt.predicates...)
			if err := kind.Start(t.Context(), queue); err != nil {
				t.Fatal(err)
			}
			if err := kind.WaitForSync(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, priority, _ := queue.GetWithPriority(); priority != handler.LowPriority {
					t.Errorf("priority of an object of the initial list is %d", priority)
				}
			}
			if misses := c.Factory().Stats()[0].Misses; (misses > 0) != tt.decoded {
				t.Errorf("%d objects were decoded", misses)
			}
		})
	}
}
