package delivery

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

// routeTypes are all types of routes that the platform has, now or later, as the Gateway API has HTTPRoute,
// GRPCRoute and whatever else is installed. The operator knows no more of them than that they have a host and
// backends.
var routeTypes = dynamicinformer.Selection{Group: GroupVersion.Group, Resource: "*routes"}

// Routes knows which hosts lead to which Workload. Types of routes may be missing when the operator starts,
// and come and go while it runs. It is safe for concurrent use.
type Routes struct {
	factory *dynamicinformer.Factory

	mu struct {
		sync.Mutex
		// hosts are those of all routes, by the Workload they lead to.
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

// Source is a source of events for a controller of Workloads: each route that appears, changes or goes leads
// to the Workloads it names. It begins when the controller starts, which is when this replica leads, and ends
// with it.
func (r *Routes) Source() source.Source {
	return source.Func(func(ctx context.Context,
		queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		enqueue := func(workloads []types.NamespacedName) {
			for _, workload := range workloads {
				queue.Add(reconcile.Request{NamespacedName: workload})
			}
		}
		// When a type goes, each of its routes is told of as deleted.
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

// add notes where a route leads, and returns that.
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

// remove forgets where a route led, and returns that.
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

// backends returns the Workloads that a route names.
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
