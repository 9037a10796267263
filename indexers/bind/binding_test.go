package bind_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/readapi"
)

func parse(t testing.TB, resources string) *indexers.Config {
	t.Helper()
	text := "apiVersion: crdcache.dev/v1alpha1\nkind: IndexConfig\nmetadata: {name: test}\nspec:\n  resources:\n" + resources
	c, err := indexers.Parse(indexers.Source{Name: "c.yaml", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	widgetsByColor = `  - name: widgets
    match: {group: example.com, resource: widgets}
    indexes: [{name: color, path: .spec.color}]
`
	widgetsBySize = `  - name: widgets
    match: {group: example.com, resource: widgets}
    indexes: [{name: color, path: .metadata.name}, {name: size, path: .spec.size, type: int, order: sorted}]
`
	widgetsDecoded = `  - name: widgets
    match: {group: example.com, resource: widgets}
    storage: {mode: object}
    indexes: [{name: color, path: .spec.color}]
`
	anyExample = `  - name: all
    match: {group: "*.example.com", resource: "*"}
    optional: true
    indexes: [{name: color, path: .spec.color}]
`
)

// scene is a server with a tracker and a factory.
type scene struct {
	*testing.T
	ctx     context.Context
	storage *readapi.Storage
	server  *rest.Config
	tracker *discovery.Tracker
	factory *dynamicinformer.Factory
}

func newScene(t *testing.T) *scene {
	t.Helper()
	return newSceneBehind(t, func(server http.Handler) http.Handler { return server })
}

// newSceneBehind is newScene with something before the server.
func newSceneBehind(t *testing.T, before func(http.Handler) http.Handler) *scene {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	storage := cluster()
	server := readapi.Config(before(readapi.NewHandler(storage, readapi.HandlerOptions{})))
	tracker, err := discovery.NewTracker(server, discovery.TrackerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := tracker.Run(ctx); err != nil { // ended by cancel
			t.Error(err)
		}
	})
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: server, Types: tracker.Types(), Linger: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := factory.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := factory.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		running.Wait()
	})
	return &scene{t, ctx, storage, server, tracker, factory}
}

// follow binds a config to what the tracker knows.
func (s *scene) follow(config *indexers.Config) *bind.Binding {
	s.Helper()
	b, err := bind.New(s.factory, config, bind.Options{OnError: func(err error) { s.Error(err) }})
	if err != nil {
		s.Fatal(err)
	}
	stop := b.Follow(s.tracker)
	s.Cleanup(func() {
		stop()
		b.Close()
	})
	return b
}

// eventually waits until the check passes: for what informers learn in their own time.
func (s *scene) eventually(what string, check func() bool) {
	s.Helper()
	for !check() {
		select {
		case <-s.ctx.Done():
			s.Fatalf("%s: it never happened", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// finds reports whether a query finds these objects.
func finds(b *bind.Binding, resource, text string, want ...string) bool {
	querier, err := b.Querier(resource)
	if err != nil {
		return false
	}
	q, err := query.Parse(text)
	if err != nil {
		panic(err)
	}
	keys, err := querier.Keys(context.Background(), q, query.Options{})
	return err == nil && slices.Equal(keys, want)
}

// A type that is installed later is bound when it is there.
func TestPatternGetsATypeThatComesLater(t *testing.T) {
	s := newScene(t)
	b := s.follow(parse(t, anyExample))
	if err := s.tracker.WaitForSync(s.ctx); err != nil {
		t.Fatal(err)
	}
	var missing *bind.TargetError
	if _, err := b.Querier("all"); !errors.As(err, &missing) || len(missing.Types) != 0 {
		t.Errorf("got %v", err)
	}
	apply(s.storage, definition("iam.example.com", "roles", "Role"))
	apply(s.storage, `{apiVersion: iam.example.com/v1, kind: Role, metadata: {namespace: a, name: x}, spec: {color: red}}`)
	s.eventually("one type", func() bool { return finds(b, "all", "color=red", "a/x") })
	apply(s.storage, definition("net.example.com", "nets", "Net"))
	s.eventually("two types", func() bool { return len(b.Targets()) == 2 })
	if _, err := b.Querier("all"); !errors.As(err, &missing) || len(missing.Types) != 2 {
		t.Errorf("got %v", err)
	}
	names := []string{}
	for _, target := range b.Targets() {
		names = append(names, target.GVR.Resource)
	}
	if diff := cmp.Diff([]string{"roles", "nets"}, names); diff != "" {
		t.Error(diff)
	}
}

// A change of indexes is taken over by the informer that runs; others make another one.
func TestApply(t *testing.T) {
	s := newScene(t)
	b := s.follow(parse(t, widgetsByColor))
	s.eventually("bound", func() bool { return finds(b, "widgets", "color=red", "home/chair", "home/lamp") })
	first, err := b.Target("widgets")
	if err != nil {
		t.Fatal(err)
	}

	if err := b.Apply(parse(t, widgetsBySize)); err != nil {
		t.Fatal(err)
	}
	if !finds(b, "widgets", "size>5", "home/lamp", "home/table") || !finds(b, "widgets", "color=lamp", "home/lamp") {
		t.Error("the new indexes are not there")
	}
	second, err := b.Target("widgets")
	if err != nil || second.Informer != first.Informer {
		t.Errorf("another informer, %v", err)
	}
	if stats := second.Stats(); len(stats) != 2 || stats[0].Index != "color" || stats[0].Matched != 3 || stats[1].Matched != 3 {
		t.Errorf("got %+v", stats)
	}

	if err := b.Apply(parse(t, "  # the same\n"+widgetsBySize)); err != nil {
		t.Fatal(err)
	}
	if same, err := b.Target("widgets"); err != nil || same.Informer != first.Informer || same.Resource != b.Config().Resources[0] {
		t.Errorf("got %+v, %v", same, err)
	}

	if err := b.Apply(parse(t, widgetsDecoded)); err != nil {
		t.Fatal(err)
	}
	third, err := b.Target("widgets")
	if err != nil || third.Informer == first.Informer {
		t.Errorf("the same informer, %v", err)
	}
	s.eventually("bound again", func() bool { return finds(b, "widgets", "color=red", "home/chair", "home/lamp") })
	s.eventually("the old one ends", first.Informer.IsStopped)

	if err := b.Apply(parse(t, anyExample)); err != nil {
		t.Fatal(err)
	}
	if len(b.Targets()) != 0 {
		t.Errorf("left: %v", b.Targets())
	}
	s.eventually("the last one ends", third.Informer.IsStopped)
}

// An index less goes at once, and a config that lacks something changes nothing.
func TestApplyLessAndWrong(t *testing.T) {
	s := newScene(t)
	b := s.follow(parse(t, widgetsBySize))
	s.eventually("bound", func() bool { return finds(b, "widgets", "size>5", "home/lamp", "home/table") })
	wrong := parse(t, strings.Replace(widgetsDecoded, "object", "compressed", 1))
	if err := b.Apply(wrong); err == nil || !strings.Contains(err.Error(), "needs a compression") || b.Config() == wrong {
		t.Errorf("got %v", err)
	}
	if _, err := bind.New(s.factory, wrong, bind.Options{}); err == nil {
		t.Error("a config that lacks something is bound")
	}
	if err := b.Apply(parse(t, strings.Replace(widgetsBySize, "{name: color, path: .metadata.name}, ", "", 1))); err != nil {
		t.Fatal(err)
	}
	querier, err := b.Querier("widgets")
	if err != nil {
		t.Fatal(err)
	}
	var unknown *query.UnknownIndexError
	if _, err := querier.ByIndex("color", "lamp"); !errors.As(err, &unknown) || !slices.Equal(unknown.Known, []string{"namespace", "size"}) {
		t.Errorf("got %v", err)
	}
	b.Close()
	if err := b.Apply(parse(t, widgetsByColor)); !errors.Is(err, bind.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// What a catalog lacks is said with the place in the config, and the rest is bound.
func TestResolve(t *testing.T) {
	s := newScene(t)
	client, err := discovery.NewClient(s.server, discovery.Options{})
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := client.Catalog(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bind.New(s.factory, parse(t, widgetsByColor+anyExample+`  - name: gadgets
    match: {group: example.com, kind: Gadget}
  - name: old
    match: {group: example.com, version: v0, kind: Widget}
`), bind.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	err = b.Resolve(catalog)
	var ce *indexers.ConfigError
	if !errors.As(err, &ce) || len(ce.Diagnostics) != 2 {
		t.Fatalf("got %v", err)
	}
	for i, want := range []string{
		"c.yaml:14:39: E304: the server has no type that fits Gadget.example.com; install its CRD",
		`c.yaml:16:52: E304: widgets.example.com cannot be listed and watched in version "v0"; the versions that can are v1`,
	} {
		if got := ce.Diagnostics[i].String(); !strings.HasPrefix(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	s.eventually("the rest", func() bool { return finds(b, "widgets", "color=blue", "home/table") })
	var missing *bind.TargetError
	if _, err := b.Querier("widgest"); !errors.As(err, &missing) || !strings.Contains(err.Error(), `no resource "widgest"`) {
		t.Errorf("got %v", err)
	}
	if _, err := b.Target(""); err == nil {
		t.Error("no name stands for a type")
	}
}

func TestDuplicates(t *testing.T) {
	s := newScene(t)
	b := s.follow(parse(t, `  - name: widgets
    match: {group: example.com, resource: widgets}
    indexes:
    - {name: color, path: .spec.color, unique: warn}
    - {name: size, path: .spec.size, unique: warn}
    - {name: kind, path: .kind}
`))
	s.eventually("bound", func() bool { return finds(b, "widgets", "color=red", "home/chair", "home/lamp") })
	target, err := b.Target("widgets")
	if err != nil {
		t.Fatal(err)
	}
	got, err := target.Duplicates(s.ctx)
	want := map[string][]query.ValueCount{"color": {{Value: "red", Parts: []string{"red"}, Count: 2}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// A subscription follows the objects of a query through a real informer.
func TestSubscriptionOnAnInformer(t *testing.T) {
	s := newScene(t)
	b := s.follow(parse(t, widgetsBySize))
	s.eventually("bound", func() bool { return len(b.Targets()) == 1 })
	target, err := b.Target("widgets")
	if err != nil {
		t.Fatal(err)
	}
	matcher, err := query.NewMatcher(query.Greater("size", "5"), target.Resource.Indexes...)
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan query.Event, 100)
	if _, err := query.Subscribe(target.Informer, matcher, func(e query.Event) { events <- e }); err != nil {
		t.Fatal(err)
	}
	expect := func(want ...string) {
		t.Helper()
		var got []string
		for range want {
			select {
			case e := <-events:
				got = append(got, string(e.Type)+" "+e.Key)
			case <-s.ctx.Done():
				t.Fatalf("got %v, want %v", got, want)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	expect("Added home/lamp", "Added home/table")
	apply(s.storage, widget("chair", "red", 30))
	expect("Added home/chair")
	apply(s.storage, widget("chair", "blue", 30))
	expect("Modified home/chair")
	apply(s.storage, widget("chair", "blue", 1))
	expect("Deleted home/chair")
}

func TestDefinitions(t *testing.T) {
	s := newScene(t)
	client, err := dynamic.NewForConfig(s.server)
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := bind.Definitions(s.ctx, client)
	if err != nil || len(definitions) != 1 {
		t.Fatalf("%d definitions, %v", len(definitions), err)
	}
	if _, err := parse(t, widgetsBySize).Check(definitions); err != nil {
		t.Error(err)
	}
	if _, err := parse(t, strings.Replace(widgetsBySize, ".spec.size", ".spec.sice", 1)).Check(definitions); err == nil || !strings.Contains(err.Error(), "did you mean .spec.size?") {
		t.Errorf("got %v", err)
	}
	gone, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, err := bind.Definitions(gone, client); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Readers, writers, queries, subscriptions and changes of the config, all at once.
func TestReloadsWhileReading(t *testing.T) {
	s := newScene(t)
	b := s.follow(parse(t, widgetsBySize))
	s.eventually("bound", func() bool { return finds(b, "widgets", "size>5", "home/lamp", "home/table") })
	configs := []*indexers.Config{parse(t, widgetsByColor), parse(t, widgetsBySize), parse(t, widgetsDecoded), parse(t, widgetsByColor+anyExample)}
	done := make(chan struct{})
	var wg sync.WaitGroup
	var written, queried, read, subscribed atomic.Int64
	wg.Go(func() {
		defer close(done)
		least := func() int64 {
			return min(written.Load(), queried.Load(), read.Load(), subscribed.Load())
		}
		// Long enough for everything to have happened beside it.
		for round := 0; round < 40 || least() < 10; round++ {
			if err := b.Apply(configs[round%len(configs)]); err != nil {
				t.Error(err)
			}
			if s.ctx.Err() != nil {
				t.Errorf("%d writes, %d queries, %d reads, %d subscriptions", written.Load(), queried.Load(), read.Load(), subscribed.Load())
				return
			}
		}
	})
	wg.Go(func() {
		for ; ; written.Add(1) {
			round := int(written.Load())
			apply(s.storage, widget("chair", []string{"red", "blue"}[round%2], round%20))
			select {
			case <-done:
				return
			default:
			}
		}
	})
	wg.Go(func() { // what client-go's interfaces read, and what happens to it
		for ; ; read.Add(1) {
			select {
			case <-done:
				return
			default:
			}
			target, err := b.Target("widgets")
			if err != nil {
				t.Error(err)
				return
			}
			indexer := target.Informer.GetIndexer()
			for _, o := range indexer.List() {
				if o.(*unstructured.Unstructured).GetName() == "" {
					t.Errorf("got %v", o)
				}
			}
			for name := range indexer.GetIndexers() {
				for _, value := range indexer.ListIndexFuncValues(name) {
					_, _ = indexer.ByIndex(name, value) // an error when the index has just gone
				}
			}
		}
	})
	wg.Go(func() {
		matcher, err := query.NewMatcher(query.Label("!none"))
		if err != nil {
			t.Error(err)
			return
		}
		for ; ; subscribed.Add(1) {
			select {
			case <-done:
				return
			default:
			}
			target, err := b.Target("widgets")
			if err != nil {
				t.Error(err)
				return
			}
			sub, err := query.Subscribe(target.Informer, matcher, func(e query.Event) {
				if e.Key == "" {
					t.Errorf("got %+v", e)
				}
			})
			if err != nil { // the informer has been released meanwhile
				continue
			}
			sub.Stop()
		}
	})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				target, err := b.Target("widgets")
				if err != nil {
					t.Error(err)
					return
				}
				target.Stats()
				querier := target.Querier()
				for _, index := range target.Resource.Indexes {
					// The next config may be in force already, and its indexes be others.
					var unknown *query.UnknownIndexError
					r, err := querier.Query(s.ctx, query.Exists(index.Name), query.Options{})
					if err != nil && !errors.As(err, &unknown) {
						t.Error(err)
						return
					}
					if err == nil {
						r.Objects()
						queried.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	if err := b.Apply(parse(t, widgetsBySize)); err != nil {
		t.Fatal(err)
	}
	s.eventually("bound again", func() bool { return finds(b, "widgets", "color=lamp", "home/lamp") })
}
