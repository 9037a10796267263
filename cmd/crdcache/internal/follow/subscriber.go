package follow

import (
	"cmp"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/indexers"
)

type subscriber struct {
	*follower
	group *informerGroup
	// feeds has the feed of each running informer. It needs no lock, because callbacks are not concurrent.
	feeds          map[schema.GroupResource]*feed
	followedBefore map[schema.GroupVersionResource]bool
}

// tableKey identifies types that share a table.
type tableKey struct {
	schema.GroupResource
	kind  string
	scope discovery.Scope
}

func (r *follower) subscribe(group *informerGroup) error {
	s := &subscriber{
		follower: r, group: group, feeds: map[schema.GroupResource]*feed{},
		followedBefore: map[schema.GroupVersionResource]bool{},
	}
	selection := dynamicinformer.Selection{Group: "*", Resource: "*", Version: group.version, Match: group.selects}
	var err error
	group.subscription, err = group.factory.Subscribe(selection, dynamicinformer.Subscriber{
		OnStarted: s.addFeed,
		OnSynced:  s.onSynced,
		OnAdd: func(gvr schema.GroupVersionResource, obj *unstructured.Unstructured, initial bool) {
			if f := s.feeds[gvr.GroupResource()]; f != nil {
				f.events.OnAdd(obj, initial)
			}
		},
		OnUpdate: func(gvr schema.GroupVersionResource, before, after *unstructured.Unstructured) {
			if f := s.feeds[gvr.GroupResource()]; f != nil {
				f.events.OnUpdate(before, after)
			}
		},
		OnDelete: func(gvr schema.GroupVersionResource, obj *unstructured.Unstructured, _ bool) {
			if f := s.feeds[gvr.GroupResource()]; f != nil {
				f.events.OnDelete(obj)
			}
		},
		OnGone:  func(g status.Incarnation, _ status.Reason) { delete(s.feeds, g.GVR.GroupResource()) },
		OnError: func(gvr schema.GroupVersionResource, err error) { s.reportNotWatched(gvr, err) },
	}, group.options)
	return err
}

func (s *subscriber) reportNotWatched(gvr schema.GroupVersionResource, err error) {
	s.status.printLine("warning: %s is not watched: %s", gvr.GroupResource(), print.Printable(err.Error()))
}

func (s *subscriber) addFeed(g status.Incarnation) {
	resource, ok := s.tracker.Snapshot().Catalog().Lookup(g.GVR)
	if !ok {
		return // the type was removed; statusReporter reports that
	}
	s.RecordUse(true, g.GVR.GroupResource())
	matcher, err := s.newMatcher(resource)
	if err == nil {
		err = s.checkScope(resource)
	}
	if err != nil {
		s.reportNotWatched(g.GVR, err)
		return
	}
	f := s.newFeed(s.screen, s.printer(resource), matcher)
	f.gvr, f.warn = g.GVR, s.status.printLine
	s.feeds[g.GVR.GroupResource()] = f
	s.screen.withLock(func() {
		if !s.screen.open {
			s.bufferedFeeds = append(s.bufferedFeeds, f)
		}
	})
	s.firstTypeStarted.fire()
}

// checkScope returns an error for a type that was installed later, if the config limits its objects: the
// factory has the limits of the initial types.
func (s *subscriber) checkScope(resource discovery.Resource) error {
	if slices.ContainsFunc(s.resources, func(r discovery.Resource) bool { return r.GVR == resource.GVR }) {
		return nil
	}
	declared, _, err := s.Settings(resource)
	if err == nil && (declared.Selectors != indexers.Selectors{} ||
		s.Namespace == "" && !declared.Namespaces.All()) {
		err = errors.New("the config limits its objects, which works for types that exist at the start: start again")
	}
	return err
}

func (s *subscriber) onSynced(g status.Incarnation) {
	if f := s.feeds[g.GVR.GroupResource()]; f != nil {
		f.markSynced()
	}
	if received, ok := s.initialObjectsReceived[g.GVR]; ok {
		received.fire()
	}
}

func (s *subscriber) printer(r discovery.Resource) printer {
	if !s.printsTables() {
		return s.textPrinter
	}
	rows := func() *print.Rows { return s.group.tableClient.Rows(r.GVR) } // set by the first list
	if s.group.tableClient == nil {
		loaded := s.initialRows[r.GVR]
		if loaded == nil || s.followedBefore[r.GVR] {
			loaded = cmp.Or(s.loadRows(r), print.NewRows(nil, s.Now))
		}
		s.followedBefore[r.GVR] = true
		rows = func() *print.Rows { return loaded }
	}
	return s.tableFor(r, rows)
}

// tableFor returns the rows of this cluster in the table of a type. It begins the table if necessary.
func (s *subscriber) tableFor(r discovery.Resource, typeRows func() *print.Rows) (rows tableRows) {
	key := tableKey{r.GVR.GroupResource(), r.GVK.Kind, r.Scope}
	s.screen.withLock(func() {
		table := s.screen.tables[key]
		if table == nil {
			table = s.newTable(s.screen.stdout, r, s.printsSeveralTypes())
			s.screen.tables[key] = table
		}
		rows = table.rowsFor(s.Cluster, typeRows)
	})
	return rows
}

func (r *follower) printsSeveralTypes() bool {
	namesOneType := func(n discovery.Name) bool {
		return !n.HasWildcard() && !slices.ContainsFunc(r.resources,
			func(resource discovery.Resource) bool { return slices.Contains(resource.Categories, n.Raw) })
	}
	return len(r.typeSelector.Names()) > 1 || len(r.resources) > 1 || !namesOneType(r.typeSelector.Names()[0])
}
