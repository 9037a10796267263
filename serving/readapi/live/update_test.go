package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/test/testcluster"
)

// updateFixture is a running binding, whose first settings select workloads by team.
type updateFixture struct {
	*fixture
	binding *bind.Binding
	served  chan schema.GroupResource
}

func newUpdateFixture(t *testing.T) *updateFixture {
	t.Helper()
	cluster, err := testcluster.New(t.Context(),
		testcluster.Options{Paths: []string{"../../../testdata/crds", "../../../testdata/objects"}})
	if err != nil {
		t.Fatal(err)
	}
	return newUpdateFixtureOf(t, cluster, nil, byTeam, noOptions)
}

// newUpdateFixtureOf is newUpdateFixture for an existing cluster, a backend and other settings.
func newUpdateFixtureOf(t *testing.T, cluster *testcluster.Cluster, backend persistence.Backend,
	index, options string) *updateFixture {
	t.Helper()
	s, tracker := newTrackedFixture(t, cluster, cluster.Config(), backend)
	ctx, cancel := context.WithCancel(context.Background())
	u := &updateFixture{fixture: s, served: make(chan schema.GroupResource, 1000)}
	var err error
	u.binding, err = s.server.Bind(u.settings(index, options, "workloads."+demoGroup), bind.Options{
		Compression: s2.New(),
		OnChange: func(_, changed *bind.Target) {
			if changed != nil {
				u.served <- changed.GVR.GroupResource()
			}
		},
		OnProblem: func(name string, why error) { t.Logf("%s is not cached: %v", name, why) }})
	s.must(err)
	s.runBinding(ctx, cancel, tracker, u.binding)
	u.awaitServed(workloads.GroupResource())
	return u
}

// awaitServed waits until a type is served and has synced.
func (u *updateFixture) awaitServed(gr schema.GroupResource) {
	u.Helper()
	for {
		select {
		case now := <-u.served:
			if now == gr {
				u.must(u.server.WaitForSync(u.Context(), gr))
				return
			}
		case <-u.Context().Done():
			u.Fatalf("%s is not served", gr)
		}
	}
}

// blockLists delays the lists of a path until the function is called.
func (u *updateFixture) blockLists(path string) (unblock func()) {
	done := make(chan struct{})
	u.cluster.Faults().Add(testcluster.Fault{Match: testcluster.Match{Path: path},
		Effect: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			select {
			case <-done:
				next.ServeHTTP(w, r)
			case <-r.Context().Done():
			}
		}})
	return func() { close(done) }
}

const noOptions = ""

// settings returns settings that select the types with these names, with these settings and this index.
func (u *updateFixture) settings(index, options string, names ...string) bind.Settings {
	u.Helper()
	selection, err := discovery.NewSelection(names...)
	u.must(err)
	config, err := indexers.Parse(indexers.Source{Name: "test.yaml", Data: []byte(
		"apiVersion: crdcache.dev/v1beta1\nkind: IndexConfig\nmetadata: {name: test}\nspec:\n  resources:\n" +
			"  - {name: all, match: {group: " + demoGroup + ", resource: '*'}, " + options + "\n    indexes: [" +
			index + "]}\n")})
	u.must(err)
	return bind.Settings{Selection: selection, Config: config}
}

// keys returns the keys that match a query, or the error.
func (u *updateFixture) keys(q string) string {
	u.Helper()
	answer := get(u.T, u.server, QueryPath(demoGroup, "v1", "", "workloads")+"?keys=true&q="+url.QueryEscape(q),
		"Cache-Control", "max-stale")
	_, keys, ok := strings.Cut(answer.Body.String(), `"keys":`)
	if !ok {
		return answer.Body.String()
	}
	return strings.TrimRight(keys, "}\n")
}

func (u *updateFixture) informer() *dynamicinformer.Informer {
	u.Helper()
	t := u.binding.Type(workloads.GroupResource())
	if t == nil {
		u.Fatal("workloads are not cached")
	}
	return t.Informer
}

func (u *updateFixture) awaitStopped(informer *dynamicinformer.Informer) {
	u.Helper()
	select {
	case <-informer.Stopped():
	case <-u.Context().Done():
		u.Fatal("an informer has not stopped")
	}
}

const (
	byTeam  = "{name: by, label: demo.crdcache.dev/team}"
	byTier  = "{name: by, path: .spec.tier}"
	byOwner = "{name: owner, path: '.spec.owners[*]'}"
	// shopKeys and batchKeys are the workloads with team shop and with tier batch.
	shopKeys  = `["storefront/search","storefront/shop-web"]`
	batchKeys = `["media/archive-sweeper","media/search","media/subtitles","media/transcoder","payments/settlement"]`
)

// TestUpdateIndexes verifies that changed indexes apply to the running informer. Its watches continue, except
// for those that use a changed index.
func TestUpdateIndexes(t *testing.T) {
	u := newUpdateFixture(t)
	name, informer := "workloads."+demoGroup, u.informer()
	byShop := "/apis/" + demoGroup + "/v1/workloads?watch=true&fieldSelector=by%3Dshop"
	watch, queryWatch := u.watch(byShop+"&resourceVersion=0"), u.watch("/query/apis/"+demoGroup+
		"/v1/workloads?watch=true&resourceVersion=0&q=by%3Dshop")
	for range 2 {
		if _, more := watch.next(); !more {
			t.Fatal("the watch has ended")
		}
		if _, more := queryWatch.next(); !more {
			t.Fatal("the watch of the query has ended")
		}
	}
	if got := u.keys("by=shop"); got != shopKeys {
		t.Errorf("by=shop: %s, want %s", got, shopKeys)
	}
	version := u.informer().History().ResourceVersion
	others := u.watch("/apis/" + demoGroup + "/v1/workloads?watch=true&resourceVersion=" + fmt.Sprint(version))
	u.must(u.binding.Update(t.Context(), u.settings(byTeam+", "+byOwner, noOptions, name)))
	u.must(u.cluster.Client().Resource(workloads).Namespace("media").Delete(t.Context(), "thumbnailer",
		metav1.DeleteOptions{}))
	if e, more := others.next(); !more || e.Object.Metadata.Name != "thumbnailer" {
		t.Errorf("the watch without an index returned %v, %v; want the deletion of thumbnailer", e, more)
	}
	for i, test := range []struct{ index, query, want string }{
		{byTier, "by=batch", batchKeys},
		{byTeam, "by=shop", shopKeys}, // the name of the first index in the informer is free again
		{byOwner, "owner=yuki@example.com", `["media/subtitles"]`},
		{byOwner, "by=shop", "there is no index"},
	} {
		u.must(u.binding.Update(t.Context(), u.settings(test.index, noOptions, name)))
		if got := u.keys(test.query); !strings.Contains(got, test.want) {
			t.Errorf("%d: %s: %s, want %s", i, test.query, got, test.want)
		}
		if i > 0 {
			continue
		}
		// Other workloads match now, so clients of the index list again.
		for _, w := range []*stream{watch, queryWatch} {
			if e, more := w.next(); !more || e.Type != "ERROR" || e.Object.Code != http.StatusGone {
				t.Errorf("the watch by a changed index returned %v, %v; want an error 410", e, more)
			}
		}
		again := u.watch(fmt.Sprintf("%s&resourceVersion=%d", byShop, version))
		if e, _ := again.next(); e.Object.Code != http.StatusGone {
			t.Errorf("a watch from before the change returned %v, want an error 410", e)
		}
	}
	if u.informer() != informer {
		t.Error("changed indexes replaced the informer")
	}
	shop, err := u.cluster.Client().Resource(workloads).Namespace("storefront").Get(t.Context(), "search",
		metav1.GetOptions{})
	u.must(err)
	u.must(u.cluster.Client().Resource(workloads).Namespace("storefront").Delete(t.Context(), shop.GetName(),
		metav1.DeleteOptions{}))
	if e, more := others.next(); !more || e.Type != "DELETED" || e.Object.Metadata.Name != "search" {
		t.Errorf("the watch without an index returned %v, %v; want the deletion of search", e, more)
	}
}

// TestUpdateOfDroppedFields verifies that no answer by an index over a field that the current informer drops
// is silently empty while a replacement with the field waits. Settings that prune the field store it for the
// index.
func TestUpdateOfDroppedFields(t *testing.T) {
	u := newUpdateFixture(t)
	const name, kept = "workloads." + demoGroup, "prune: {remove: [.spec.image]},"
	before := u.informer()
	u.must(u.binding.Update(t.Context(), u.settings(byOwner, kept, name)))
	u.awaitStopped(before)
	u.must(u.server.WaitForSync(t.Context(), workloads.GroupResource()))
	list := "/apis/" + demoGroup + "/v1/workloads"
	u.blockLists(list)
	const watch = "watch=true&resourceVersion=0&timeoutSeconds=1&"
	wants := []string{"there is no index", "field label not supported"}
	for _, options := range []string{noOptions, kept} {
		u.must(u.binding.Update(t.Context(), u.settings("{name: by, path: .spec.image}", options, name)))
		for _, path := range []string{list + "?resourceVersion=0&fieldSelector=by%3Dbatch",
			list + "?" + watch + "fieldSelector=by%3Dbatch", "/query" + list + "?" + watch + "q=by%3Dbatch",
			"/query" + list + "?q=by%3Dbatch", "/query" + list + "?values=by"} {
			answer := get(t, u.server, path, "Cache-Control", "max-stale")
			if answer.Code != http.StatusBadRequest || !slices.ContainsFunc(wants,
				func(want string) bool { return strings.Contains(answer.Body.String(), want) }) {
				t.Errorf("%s = %d %s, want 400 and one of %q", path, answer.Code, answer.Body, wants)
			}
		}
	}
}

// TestUpdateIsAtomic verifies that settings with an error change no type, and that types are added and
// dropped with the settings, also while a replacement waits.
func TestUpdateIsAtomic(t *testing.T) {
	u := newUpdateFixture(t)
	names := []string{"environments." + demoGroup, "workloads." + demoGroup}
	served := func() string {
		var found []string
		for _, cached := range u.binding.Targets() {
			found = append(found, cached.GVR.Resource)
		}
		return strings.Join(found, " ")
	}
	const selected = "selectors: {labels: a=b},"
	if err := u.binding.Update(t.Context(), u.settings(byTier, selected, names...)); err == nil ||
		!strings.Contains(err.Error(), "selector") {
		t.Errorf("Update() = %v, want an error about the selector", err)
	}
	if got := u.keys("by=shop"); got != shopKeys || served() != "workloads" {
		t.Errorf("after an error, %s are served and by=shop: %s, want workloads and %s", served(), got, shopKeys)
	}
	u.must(u.binding.Update(t.Context(), u.settings(byTier, noOptions, names...)))
	if served() != "environments workloads" {
		t.Errorf("%s are served, want environments and workloads", served())
	}
	gr := schema.GroupResource{Group: demoGroup, Resource: "gadgets"}
	u.must(u.cluster.Load(t.Context(), gadgetsDefinition("v1")))
	u.must(u.binding.Update(t.Context(), u.settings(byTier, noOptions, gr.String())))
	u.awaitServed(gr)
	u.blockLists("/apis/" + demoGroup + "/v1/gadgets")
	const kept = "keep: {paths: [.spec]},"
	u.must(u.binding.Update(t.Context(), u.settings(byTier, kept, "gadgets."+demoGroup)))
	before, pending := u.binding.Type(gr), u.binding.Pending()
	u.must(u.cluster.Client().Resource(crd.GVR).Delete(t.Context(), gr.String(), metav1.DeleteOptions{}))
	u.awaitStopped(before.Informer)
	u.awaitStopped(pending[0].Informer)
	u.must(u.binding.Update(t.Context(), u.settings(byTier, kept)))
	if served() != "" || len(u.binding.Problems()) > 0 {
		t.Errorf("%q are served with the problems %v, want nothing", served(), u.binding.Problems())
	}
	if err := u.binding.Update(t.Context(), bind.Settings{}); err == nil {
		t.Error("Update() without a selection succeeded, want an error")
	}
}

// TestUpdateEnds verifies that the end of its context ends an update that computes indexes, and changes
// nothing.
func TestUpdateEnds(t *testing.T) {
	u := newUpdateFixture(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	settings := u.settings(byTier, noOptions, "workloads."+demoGroup)
	settings.Exclude = func(discovery.Resource) error {
		cancel(errors.New("enough")) // the update has begun
		return nil
	}
	if err := u.binding.Update(ctx, settings); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("Update() = %v, want the end of its context", err)
	}
	if got := u.keys("by=shop"); got != shopKeys {
		t.Errorf("after the end, by=shop: %s, want %s", got, shopKeys)
	}
}

// TestUpdateDuringQueries verifies that each answer during updates is from the old or from the new indexes.
func TestUpdateDuringQueries(t *testing.T) {
	u := newUpdateFixture(t)
	name := "workloads." + demoGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var queries sync.WaitGroup
	wants := []string{shopKeys, batchKeys}
	for range 4 {
		queries.Go(func() {
			for ctx.Err() == nil {
				if got := u.keys("by in (shop, batch)"); !slices.Contains(wants, got) {
					t.Errorf("by in (shop, batch): %s, want one of %s", got, wants)
					return
				}
			}
		})
	}
	for i := range 60 {
		index := []string{byTier, byTeam, byTier + ", " + byOwner}[i%3]
		u.must(u.binding.Update(t.Context(), u.settings(index, noOptions, name)))
	}
	cancel()
	queries.Wait()
}

// lockedBackend stores contents in memory, and gives each to one owner at a time.
type lockedBackend struct{ contents sync.Map }

type lockedContent struct {
	sync.Mutex // held by the owner
	at         persistence.Checkpoint
	records    []persistence.Record
	// loads and loadedObjects count the loads and their objects.
	loads, loadedObjects int
}

func (b *lockedBackend) Open(_ context.Context, view persistence.View) (persistence.StoredContent, error) {
	c, _ := b.contents.LoadOrStore(view, &lockedContent{})
	if !c.(*lockedContent).TryLock() {
		return nil, errors.New("the content is in use")
	}
	return c.(*lockedContent), nil
}

func (c *lockedContent) Load(_ context.Context,
	f func(persistence.Checkpoint, persistence.LoadFunc) error) error {
	if len(c.records) == 0 {
		return nil
	}
	return f(c.at, c.load)
}

func (c *lockedContent) load(onRecord func(persistence.Record) error) (err error) {
	c.loads, c.loadedObjects = c.loads+1, c.loadedObjects+c.at.Objects
	for _, record := range c.records {
		err = errors.Join(err, onRecord(record))
	}
	return err
}

func (c *lockedContent) Save(_ context.Context, at persistence.Checkpoint, whole bool,
	write func(persistence.PutRecord) error) error {
	if c.at = at; whole {
		c.records = nil
	}
	return write(func(head, bodies []byte) error {
		record := persistence.Record{Head: bytes.Clone(head)}
		if bodies != nil {
			text := bytes.Clone(bodies)
			record.Bodies = func() ([]byte, error) { return text, nil }
		}
		c.records = append(c.records, record)
		return nil
	})
}

func (c *lockedContent) NeedsRewrite() bool { return false }
func (c *lockedContent) Close() error       { c.Unlock(); return nil }

// loads returns the number of loads of workloads, and of their objects. No content may be open.
func (b *lockedBackend) loads(t *testing.T) (loads, objects int) {
	t.Helper()
	b.contents.Range(func(key, value any) bool {
		c := value.(*lockedContent)
		if !c.TryLock() {
			t.Fatalf("the content %v is open after the shutdown", key)
		}
		defer c.Unlock()
		if key.(persistence.View).Resource == workloads {
			loads, objects = loads+c.loads, objects+c.loadedObjects
		}
		return true
	})
	return loads, objects
}

// TestUpdatePersisted verifies that a restart after updates costs as little as one without: it loads the
// last saved objects once and does not list them. The new index has them.
func TestUpdatePersisted(t *testing.T) {
	const reduced = "keep: {paths: [.spec.environment, .spec.tier, .spec.replicas, .spec.paused, .status.phase]},"
	const compressed = "storage: {mode: Compressed},"
	for name, steps := range map[string][]string{
		"indexes":                       {noOptions},
		"compressed storage":            {noOptions, compressed}, // shares the stored content
		"kept fields":                   {noOptions, reduced},
		"kept fields, then whole again": {reduced, compressed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the server confirms restored objects after seconds
			cluster, err := testcluster.New(t.Context(),
				testcluster.Options{Paths: []string{"../../../testdata/crds", "../../../testdata/objects"}})
			if err != nil {
				t.Fatal(err)
			}
			backend, lastOptions := &lockedBackend{}, steps[len(steps)-1]
			lists := func() int {
				return cluster.Faults().Count(testcluster.Match{Verbs: []string{"watch-list"},
					Resource: "workloads"})
			}
			var objects int
			t.Run("update", func(t *testing.T) {
				u := newUpdateFixtureOf(t, cluster, backend, byTeam, noOptions)
				for i, options := range steps {
					before := u.informer()
					u.must(u.binding.Update(t.Context(), u.settings(byTier, options, "workloads."+demoGroup)))
					if i > 0 || options == reduced {
						u.awaitStopped(before)
						u.must(u.server.WaitForSync(t.Context(), workloads.GroupResource()))
					}
				}
				u.must(cluster.Client().Resource(workloads).Namespace("storefront").Delete(t.Context(), "search",
					metav1.DeleteOptions{}))
				countAnswer := get(t, u.server, QueryPath(demoGroup, "v1", "", "workloads")+"?count=true")
				objects = u.informer().Snapshot().Len()
				if _, present := u.informer().Snapshot().Stored("storefront/search"); countAnswer.Code != 200 || present {
					t.Errorf("the cache is not fresh after %d %s", countAnswer.Code, countAnswer.Body)
				}
			})
			loadsBefore, objectsBefore := backend.loads(t)
			listsBefore := lists()
			t.Run("restart", func(t *testing.T) {
				u := newUpdateFixtureOf(t, cluster, backend, byTier, lastOptions)
				if got := u.keys("by=batch"); got != batchKeys {
					t.Errorf("by=batch: %s, want %s", got, batchKeys)
				}
			})
			loads, loadedObjects := backend.loads(t)
			if loads, loadedObjects = loads-loadsBefore, loadedObjects-objectsBefore; loads != 1 ||
				loadedObjects != objects || lists() != listsBefore {
				t.Errorf("the restart loaded %d objects in %d loads and sent %d lists, want %d, 1 and 0", loadedObjects,
					loads, lists()-listsBefore, objects)
			}
		})
	}
}
