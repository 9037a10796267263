package follow

import (
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/naming"
)

// informerGroup selects types that share a factory and informer options. Every type belongs to one group.
type informerGroup struct {
	factory *dynamicinformer.Factory
	// subscription is nil before follow calls subscribe.
	subscription *dynamicinformer.Subscription
	options      dynamicinformer.ResourceOptions
	selector     *selector
	// version is the requested version. Empty means the preferred version.
	version                   string
	namespaced, clusterScoped bool
	// custom and builtin select types with and without a CRD.
	custom, builtin bool
	// tableClient lists the rows of types without a CRD. It is nil in other groups.
	tableClient *print.TableClient
}

func (r *follower) newGroups() ([]*informerGroup, error) {
	httpClient, err := r.HTTPClient()
	if err != nil {
		return nil, err
	}
	serverURL, _, err := rest.DefaultServerUrlFor(r.Rest)
	if err != nil {
		return nil, err
	}
	httpClient = r.unwatchable.wrap(httpClient, strings.TrimSuffix(serverURL.Path, "/"))
	client, err := dynamicinformer.NewClient(r.Rest, httpClient)
	if err != nil {
		return nil, err
	}
	templates := []informerGroup{{custom: true, builtin: true}}
	clients := []dynamic.Interface{client}
	if r.printsTables() {
		r.client = client
		tables, err := print.NewPlainClient(r.Rest, httpClient)
		if err != nil {
			return nil, err
		}
		tableClient := print.NewTableClient(tables, client)
		templates = []informerGroup{{custom: true}, {builtin: true, tableClient: tableClient}}
		clients = append(clients, tableClient)
	}
	var groups []*informerGroup
	for i, template := range templates {
		template.selector = r.typeSelector
		if template.factory, err = r.newFactory(clients[i]); err != nil {
			return nil, err
		}
		for _, version := range r.typeSelector.versions() {
			template.version = version
			groups = append(groups, template.splitByScope(r.Namespace)...)
		}
	}
	return groups, nil
}

// newFactory returns a factory with the selectors and namespaces of the config for the types in resources.
func (r *follower) newFactory(client dynamic.Interface) (*dynamicinformer.Factory, error) {
	perType := map[schema.GroupVersionResource]dynamicinformer.ResourceOptions{}
	for _, typ := range r.resources {
		_, declared, err := r.Settings(typ)
		if err != nil {
			return nil, err
		}
		perType[typ.GVR] = dynamicinformer.ResourceOptions{Namespaces: declared.Namespaces,
			LabelSelector: declared.LabelSelector, FieldSelector: declared.FieldSelector}
	}
	return dynamicinformer.New(dynamicinformer.Options{
		Client: client, Types: r.tracker.Types(), Defaults: r.InformerOptions(), Resources: perType,
		Listener: status.Listener{StateChanged: r.stateChanged, ConditionChanged: r.status.conditionChanged},
	})
}

// splitByScope returns one group for all scopes, or two groups if namespaced types are limited to a
// namespace.
func (p informerGroup) splitByScope(namespace string) []*informerGroup {
	namespacedGroup, clusterGroup := p, p
	namespacedGroup.namespaced, clusterGroup.clusterScoped = true, true
	if namespace == "" {
		namespacedGroup.clusterScoped = true
		return []*informerGroup{&namespacedGroup}
	}
	namespacedGroup.options.Namespaces = dynamicinformer.InNamespaces(namespace)
	return []*informerGroup{&namespacedGroup, &clusterGroup}
}

func (p *informerGroup) selects(t typesource.Type) bool {
	if t.Namespaced && !p.namespaced || !t.Namespaced && !p.clusterScoped || t.UID != "" && !p.custom ||
		t.UID == "" && !p.builtin {
		return false
	}
	return p.selector.matches(discovery.ResolvedType{GroupResource: t.GroupResource, Version: p.version})
}

// acquireInformers starts the informers of the initial types, and holds them until they are settled. The
// subscriptions share these informers.
func (r *follower) acquireInformers(groups []*informerGroup) ([]*dynamicinformer.Handle, error) {
	var pending []*dynamicinformer.Handle
	snapshot := r.tracker.Snapshot()
	for _, resource := range r.resources {
		uid := discoveredType(snapshot, resource).UID
		t := typesource.Type{GroupResource: resource.GVR.GroupResource(),
			Namespaced: resource.Scope == discovery.Namespaced, UID: uid}
		for _, group := range groups {
			if group.version != "" && group.version != resource.GVR.Version || !group.selects(t) {
				continue
			}
			handle, err := group.factory.Acquire(resource.GVR, group.options)
			if err != nil {
				return nil, err
			}
			r.initialObjectsReceived[resource.GVR] = newSignal()
			pending = append(pending, handle)
			break
		}
	}
	return pending, nil
}

func discoveredType(snapshot *discovery.Snapshot, r discovery.Resource) discovery.Type {
	t, _ := snapshot.Lookup(r.GVR.GroupResource())
	return t
}

// loadInitialRows loads the columns of the initial types with a CRD. It reuses CRDs that were already
// fetched.
func (r *follower) loadInitialRows() {
	snapshot := r.tracker.Snapshot()
	customTypes := slices.DeleteFunc(slices.Clone(r.resources),
		func(resource discovery.Resource) bool { return discoveredType(snapshot, resource).UID == "" })
	r.initialRows = map[schema.GroupVersionResource]*print.Rows{}
	for i, rows := range print.LoadRows(r.ctx, r.Definitions(r.client), customTypes, r.ErrOut, r.Now) {
		r.initialRows[customTypes[i].GVR] = rows
	}
}

// loadRows fetches the CRD of a type that was installed later or again.
func (r *follower) loadRows(resource discovery.Resource) *print.Rows {
	fetch := func(ctx context.Context, resource schema.GroupResource) (*crd.Definition, error) {
		return crd.Fetch(ctx, r.client, resource)
	}
	return print.LoadRows(r.ctx, fetch, []discovery.Resource{resource}, r.ErrOut, r.Now)[0]
}

// selector matches the current types with the names of a command. It is safe for concurrent use.
type selector struct {
	*discovery.Selection
	snapshot func() *discovery.Snapshot

	mu struct {
		sync.Mutex
		snapshot     *discovery.Snapshot
		matchedTypes map[discovery.ResolvedType]bool // of snapshot
	}
}

// hasPatterns reports whether a name can match several types, such as a wildcard or a category.
func (s *selector) hasPatterns() bool {
	return slices.ContainsFunc(s.Names(), discovery.Name.HasWildcard)
}

// versions returns "" for the preferred version, and the versions in the names.
func (s *selector) versions() []string {
	versions := []string{""}
	for _, n := range s.Names() {
		for _, r := range n.Interpretations {
			versions = naming.AppendMissing(versions, r.Version)
		}
	}
	return versions
}

// addListOnlyLocked adds the types of wildcards and categories that can be listed but not watched.
func (s *selector) addListOnlyLocked(catalog *discovery.Catalog) {
	for _, name := range s.Names() {
		resolution, _ := catalog.ResolveName(name) // without a match there may be one later
		for _, skipped := range resolution.Skipped {
			if skipped.Reason != discovery.SkipNoWatch {
				continue
			}
			matched := discovery.ResolvedType{GroupResource: skipped.GVR.GroupResource()}
			if !skipped.Resource.Preferred {
				matched.Version = skipped.GVR.Version
			}
			s.mu.matchedTypes[matched] = true
		}
	}
}

func (s *selector) matches(t discovery.ResolvedType) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if current := s.snapshot(); current != s.mu.snapshot {
		s.mu.snapshot, s.mu.matchedTypes = current, s.MatchedTypes(current.Catalog())
		s.addListOnlyLocked(current.Catalog())
	}
	return s.mu.matchedTypes[t]
}
