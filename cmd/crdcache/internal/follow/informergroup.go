package follow

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

// informerGroup is the types that share a factory and informer options. Every type belongs to one group.
type informerGroup struct {
	factory *dynamicinformer.Factory
	// subscription prints the events; nil before it is created.
	subscription *dynamicinformer.Subscription
	options      dynamicinformer.ResourceOptions
	selector     *selector
	// version is the requested version. Empty means the preferred one.
	version string
	// namespaced and cluster select the scopes.
	namespaced, cluster bool
	// custom and builtin select types with and without a CRD.
	custom, builtin bool
	// tables lists the rows of types without a CRD. It is nil if no tables are printed.
	tables *print.TableClient
}

func (r *run) groups() ([]*informerGroup, error) {
	httpClient, err := r.HTTPClient()
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(r.Rest)
	if err != nil {
		return nil, err
	}
	httpClient = r.unwatchable.wrap(httpClient, strings.TrimSuffix(base.Path, "/"))
	client, err := dynamicinformer.NewClient(r.Rest, httpClient)
	if err != nil {
		return nil, err
	}
	kinds := []informerGroup{{custom: true, builtin: true}}
	clients := []dynamic.Interface{client}
	if r.printsTables() {
		r.client = client
		columns, err := print.NewTableClient(r.Rest, httpClient, client)
		if err != nil {
			return nil, err
		}
		kinds = []informerGroup{{custom: true}, {builtin: true, tables: columns}}
		clients = append(clients, columns)
	}
	var groups []*informerGroup
	for i, kind := range kinds {
		kind.selector = r.typeSelector
		if kind.factory, err = r.factory(clients[i]); err != nil {
			return nil, err
		}
		for _, version := range r.typeSelector.versions() {
			kind.version = version
			groups = append(groups, kind.scopes(r.Namespace)...)
		}
	}
	return groups, nil
}

func (r *run) factory(client dynamic.Interface) (*dynamicinformer.Factory, error) {
	return dynamicinformer.New(dynamicinformer.Options{
		Client: client, Types: r.tracker.Types(), Defaults: r.InformerOptions(),
		Listener: status.Listener{StateChanged: r.stateChanged, ConditionChanged: r.status.conditionChanged},
	})
}

// scopes splits the group if a namespace limits its namespaced types.
func (p informerGroup) scopes(namespace string) []*informerGroup {
	inside, outside := p, p
	inside.namespaced, outside.cluster = true, true
	if namespace == "" {
		inside.cluster = true
		return []*informerGroup{&inside}
	}
	inside.options.Namespaces = dynamicinformer.InNamespaces(namespace)
	return []*informerGroup{&inside, &outside}
}

func (p *informerGroup) selection() dynamicinformer.Selection {
	return dynamicinformer.Selection{Group: "*", Resource: "*", Version: p.version, Match: p.has}
}

func (p *informerGroup) has(t typesource.Type) bool {
	if t.Namespaced && !p.namespaced || !t.Namespaced && !p.cluster || t.UID != "" && !p.custom ||
		t.UID == "" && !p.builtin {
		return false
	}
	return p.selector.has(discovery.ResolvedType{GroupResource: t.GroupResource, Version: p.version})
}

// pendingInformer is the handle of an informer that is held until it is settled.
type pendingInformer struct {
	*dynamicinformer.Handle
	gvr schema.GroupVersionResource
}

// acquire starts the informers of the initial types. The subscriptions share them.
func (r *run) acquire(groups []*informerGroup) ([]pendingInformer, error) {
	var pending []pendingInformer
	snapshot := r.tracker.Snapshot()
	for _, resource := range r.resources {
		uid := typeOf(snapshot, resource).UID
		t := typesource.Type{GroupResource: resource.GVR.GroupResource(),
			Namespaced: resource.Scope == discovery.Namespaced, UID: uid}
		for _, p := range groups {
			if p.version != "" && p.version != resource.GVR.Version || !p.has(t) {
				continue
			}
			handle, err := p.factory.Acquire(resource.GVR, p.options)
			if err != nil {
				return nil, err
			}
			r.initialObjectsReceived[resource.GVR] = newSignal()
			pending = append(pending, pendingInformer{handle, resource.GVR})
			break
		}
	}
	return pending, nil
}

func typeOf(snapshot *discovery.Snapshot, r discovery.Resource) discovery.Type {
	t, _ := snapshot.Lookup(r.GVR.GroupResource())
	return t
}

// loadInitialRows loads the columns of the initial types with a CRD. It reuses the CRDs that the command has
// fetched.
func (r *run) loadInitialRows() {
	snapshot := r.tracker.Snapshot()
	defined := slices.DeleteFunc(slices.Clone(r.resources),
		func(resource discovery.Resource) bool { return typeOf(snapshot, resource).UID == "" })
	r.initialRows = map[schema.GroupVersionResource]print.RowFormatter{}
	for i, rows := range print.LoadRows(r.ctx, r.Definitions(r.client), defined, r.ErrOut) {
		r.initialRows[defined[i].GVR] = rows
	}
}

// loadRows loads the columns of a type that was installed later or again.
func (r *run) loadRows(resource discovery.Resource) print.RowFormatter {
	fetch := func(ctx context.Context, resource schema.GroupResource) (*crd.Definition, error) {
		return crd.Fetch(ctx, r.client, resource)
	}
	return print.LoadRows(r.ctx, fetch, []discovery.Resource{resource}, r.ErrOut)[0]
}
