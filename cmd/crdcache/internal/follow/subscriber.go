package follow

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// subscriber forwards the events of an informer group to feeds.
type subscriber struct {
	*run
	group *informerGroup
	// feeds has the feed of each running informer. The factory does not call a subscriber concurrently.
	feeds          map[schema.GroupResource]*feed
	followedBefore map[schema.GroupVersionResource]bool
}

// tableKey identifies types that share a table.
type tableKey struct {
	schema.GroupResource
	kind  string
	scope discovery.Scope
}

func (r *run) subscribe(p *informerGroup) error {
	s := &subscriber{
		run: r, group: p, feeds: map[schema.GroupResource]*feed{},
		followedBefore: map[schema.GroupVersionResource]bool{},
	}
	var err error
	p.subscription, err = p.factory.Subscribe(p.selection(), dynamicinformer.Subscriber{
		OnStarted: s.addFeed,
		OnSynced:  s.synced,
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
		OnError: func(gvr schema.GroupVersionResource, err error) { s.reject(gvr, err) },
	}, p.options)
	return err
}

// reject reports that a type is not followed.
func (s *subscriber) reject(gvr schema.GroupVersionResource, err error) {
	s.status.printLine("warning: %s is not watched: %s", gvr.GroupResource(), print.Printable(err.Error()))
}

// addFeed creates the feed of a type.
func (s *subscriber) addFeed(g status.Incarnation) {
	resource, ok := s.tracker.Snapshot().Catalog().Lookup(g.GVR)
	if !ok {
		return // the type was removed; statusReporter reports that
	}
	s.RecordUse(g.GVR.GroupResource())
	matcher, err := s.matcher(resource)
	if err != nil {
		s.reject(g.GVR, err)
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

// synced starts the feed of a type.
func (s *subscriber) synced(g status.Incarnation) {
	if f := s.feeds[g.GVR.GroupResource()]; f != nil {
		f.markSynced()
	}
	if ready, ok := s.initialObjectsReceived[g.GVR]; ok {
		ready.fire()
	}
}

func (s *subscriber) printer(r discovery.Resource) printer {
	if !s.printsTables() {
		return s.textPrinter
	}
	rows := func() print.RowFormatter { return s.group.tables.Rows(r.GVR) } // set by the first list
	if s.group.tables == nil {
		loaded := s.initialRows[r.GVR]
		if loaded == nil || s.followedBefore[r.GVR] {
			loaded = cmp.Or(s.loadRows(r), print.NewRows(nil))
		}
		s.followedBefore[r.GVR] = true
		rows = func() print.RowFormatter { return loaded }
	}
	return s.tableFor(r, rows)
}

// tableFor returns the printer of the current columns of a type in its table.
func (s *subscriber) tableFor(r discovery.Resource, columns func() print.RowFormatter) (rows tableRows) {
	key := tableKey{r.GVR.GroupResource(), r.GVK.Kind, r.Scope}
	s.screen.withLock(func() {
		p := s.screen.tables[key]
		if p == nil {
			p = s.newTable(s.screen.stdout, r, s.printsSeveralTypes())
			s.screen.tables[key] = p
		}
		rows = p.rowsOf(s.Cluster, columns)
	})
	return rows
}

// printsSeveralTypes reports whether the command can print more than one type.
func (r *run) printsSeveralTypes() bool {
	plain := func(n discovery.Name) bool {
		return !n.HasWildcard() && !slices.ContainsFunc(r.resources,
			func(resource discovery.Resource) bool { return slices.Contains(resource.Categories, n.Raw) })
	}
	return len(r.typeSelector.Names()) > 1 || len(r.resources) > 1 || !plain(r.typeSelector.Names()[0])
}
