package operator_test

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// routeTypes selects all present and future types of routes, just as the Gateway API has HTTPRoute,
// GRPCRoute and so on. The operator relies only on their host and backends.
var routeTypes = dynamicinformer.Selection{Group: GroupVersion.Group, Resource: "*routes"}

// Routes maps Workloads to hosts. Types of routes may be missing when the operator starts, and may be
// installed and removed while it runs. It is safe for concurrent use.
type Routes struct {
	factory *dynamicinformer.Factory

	mu struct {
		sync.Mutex
		// hosts has the hosts of all routes, by Workload.
		hosts map[types.NamespacedName]map[routeKey]string
	}
}

// routeKey identifies a route of any type.
type routeKey struct {
	resource schema.GroupResource
	types.NamespacedName
}

// Hosts returns the hosts that lead to a Workload, sorted.
func (r *Routes) Hosts(workload types.NamespacedName) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Compact(slices.Sorted(maps.Values(r.mu.hosts[workload])))
}

// Source is an event source for a controller of Workloads: each event of a route enqueues the Workloads
// that the route names. It runs while the controller runs, so only on the leader.
func (r *Routes) Source() source.Source {
	return source.Func(func(ctx context.Context,
		queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		enqueue := func(workloads []types.NamespacedName) {
			for _, workload := range workloads {
				queue.Add(reconcile.Request{NamespacedName: workload})
			}
		}
		// When a type is removed, OnDelete is called for each of its routes.
		subscription, err := r.factory.Subscribe(routeTypes, dynamicinformer.Subscriber{
			OnAdd: func(gvr schema.GroupVersionResource, route *unstructured.Unstructured, _ bool) {
				enqueue(r.add(gvr, route))
			},
			OnUpdate: func(gvr schema.GroupVersionResource, before, after *unstructured.Unstructured) {
				enqueue(r.remove(gvr, before))
				enqueue(r.add(gvr, after))
			},
			OnDelete: func(gvr schema.GroupVersionResource, route *unstructured.Unstructured, _ bool) {
				enqueue(r.remove(gvr, route))
			},
		})
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, subscription.Close)
		return nil
	})
}

// add records the backends of a route, and returns them.
func (r *Routes) add(gvr schema.GroupVersionResource,
	route *unstructured.Unstructured) []types.NamespacedName {
	host, _, _ := unstructured.NestedString(route.Object, "spec", "host")
	workloads := backends(route)
	key := routeKey{gvr.GroupResource(), client.ObjectKeyFromObject(route)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.hosts == nil {
		r.mu.hosts = map[types.NamespacedName]map[routeKey]string{}
	}
	for _, workload := range workloads {
		if r.mu.hosts[workload] == nil {
			r.mu.hosts[workload] = map[routeKey]string{}
		}
		r.mu.hosts[workload][key] = host
	}
	return workloads
}

// remove removes the backends of a route, and returns them.
func (r *Routes) remove(gvr schema.GroupVersionResource,
	route *unstructured.Unstructured) []types.NamespacedName {
	workloads := backends(route)
	key := routeKey{gvr.GroupResource(), client.ObjectKeyFromObject(route)}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, workload := range workloads {
		delete(r.mu.hosts[workload], key)
		if len(r.mu.hosts[workload]) == 0 {
			delete(r.mu.hosts, workload)
		}
	}
	return workloads
}

func backends(route *unstructured.Unstructured) []types.NamespacedName {
	list, _, _ := unstructured.NestedFieldNoCopy(route.Object, "spec", "backends")
	items, _ := list.([]any)
	var workloads []types.NamespacedName
	for _, item := range items {
		backend, _ := item.(map[string]any)
		if name, _ := backend["workload"].(string); name != "" {
			workloads = append(workloads, types.NamespacedName{Namespace: route.GetNamespace(), Name: name})
		}
	}
	return workloads
}
