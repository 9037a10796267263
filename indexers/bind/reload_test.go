package bind_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
)

// concurrentLoad repeats operations of a binding concurrently until done is closed.
type concurrentLoad struct {
	*fixture
	b    *bind.Binding
	done chan struct{}
	wg   sync.WaitGroup
	// counters of operations
	written, queried, read, subscribed atomic.Int64
}

// repeat calls operation until it fails or done is closed.
func (c *concurrentLoad) repeat(operation func() error) {
	c.wg.Go(func() {
		for {
			select {
			case <-c.done:
				return
			default:
			}
			if err := operation(); err != nil {
				c.Error(err)
				return
			}
		}
	})
}

// reload applies the configs in turn until each operation ran at least ten times.
func (c *concurrentLoad) reload(configs ...*indexers.Config) {
	defer close(c.done)
	for round := 0; round < 40 || min(c.written.Load(), c.queried.Load(), c.read.Load(),
		c.subscribed.Load()) < 10; round++ {
		if err := c.b.Apply(configs[round%len(configs)]); err != nil {
			c.Error(err)
		}
		if c.ctx.Err() != nil {
			c.Errorf("timed out after %d writes, %d queries, %d reads and %d subscriptions, want 10 of each",
				c.written.Load(), c.queried.Load(), c.read.Load(), c.subscribed.Load())
			return
		}
	}
}

// write changes the color and the size of the widget chair.
func (c *concurrentLoad) write() error {
	round := int(c.written.Load())
	apply(c.cluster, widget("chair", []string{"red", "blue"}[round%2], round%20))
	c.written.Add(1)
	return nil
}

// readAll reads all objects and all keys of the indexes through client-go's interfaces.
func (c *concurrentLoad) readAll() error {
	target, err := c.b.Target("widgets")
	if err != nil {
		return err
	}
	indexer := target.Informer.GetIndexer()
	for _, o := range indexer.List() {
		if o.(*unstructured.Unstructured).GetName() == "" {
			return fmt.Errorf("List returned an object without a name: %v", o)
		}
	}
	for name := range indexer.GetIndexers() {
		for _, value := range indexer.ListIndexFuncValues(name) {
			_, _ = indexer.ByIndex(name, value) // fails if the index was just removed
		}
	}
	c.read.Add(1)
	return nil
}

// subscribe subscribes to the current informer and stops the subscription again.
func (c *concurrentLoad) subscribe() error {
	matcher, err := query.NewMatcher(query.Label("!none"))
	if err != nil {
		return err
	}
	target, err := c.b.Target("widgets")
	if err != nil {
		return err
	}
	sub, err := query.Subscribe(target.Informer, matcher, func(e query.Event) {
		if e.Key == "" {
			c.Errorf("event without a key: %+v", e)
		}
	})
	if err == nil { // an error means that the informer was just released
		sub.Stop()
	}
	c.subscribed.Add(1)
	return nil
}

// query queries each index of the current target.
func (c *concurrentLoad) query() error {
	target, err := c.b.Target("widgets")
	if err != nil {
		return err
	}
	target.Stats()
	querier := target.Querier()
	for _, index := range target.Resource.Indexes {
		r, err := querier.Query(c.ctx, query.Exists(index.Name), query.Options{})
		if err == nil {
			r.Objects()
			c.queried.Add(1)
			continue
		}
		// the next config may be in effect with other indexes
		if unknown := (*query.UnknownIndexError)(nil); !errors.As(err, &unknown) {
			return err
		}
	}
	return nil
}

// TestReloadsWhileReading verifies that reads, writes, queries and subscriptions succeed while the config
// changes.
func TestReloadsWhileReading(t *testing.T) {
	s := newFixture(t)
	binding := s.follow(parse(t, widgetsBySize))
	s.eventually("bound", func() bool { return queryReturns(binding, "widgets", "size>5", "home/lamp", "home/table") })
	load := &concurrentLoad{fixture: s, b: binding, done: make(chan struct{})}
	for _, operation := range []func() error{load.write, load.readAll, load.subscribe, load.query,
		load.query} {
		load.repeat(operation)
	}
	load.reload(parse(t, widgetsByColor), parse(t, widgetsBySize), parse(t, widgetsDecoded),
		parse(t, widgetsByColor+anyExample))
	load.wg.Wait()
	noError(t, binding.Apply(parse(t, widgetsBySize)))
	s.eventually("the last config is applied", func() bool {
		return queryReturns(binding, "widgets", "color=lamp", "home/lamp")
	})
}

// TestQueriesWhileRedefiningAnIndex verifies that queries succeed while an index changes: each uses either
// the old or the new declaration.
func TestQueriesWhileRedefiningAnIndex(t *testing.T) {
	s := newFixture(t)
	binding := s.follow(parse(t, widgetsByColor))
	s.eventually("bound", func() bool { return queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp") })
	querier, err := binding.Querier("widgets")
	noError(t, err)
	load := &concurrentLoad{fixture: s, b: binding, done: make(chan struct{})}
	for range 2 {
		load.repeat(func() error {
			_, err := querier.Keys(s.ctx,
				query.And(query.Exists("color"), query.Not(query.Eq("color", "red"))), query.Options{})
			load.queried.Add(1)
			return err
		})
	}
	configs := []*indexers.Config{parse(t, strings.Replace(widgetsByColor, "path: .spec.color",
		"path: .metadata.name", 1)), parse(t, widgetsByColor)}
	for round := 0; round < 60 || load.queried.Load() < 200; round++ {
		if err := binding.Apply(configs[round%2]); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			break
		}
	}
	close(load.done)
	load.wg.Wait()
}

// TestSubscriptionOnAnInformer verifies the events of a subscription to a query of a running informer.
func TestSubscriptionOnAnInformer(t *testing.T) {
	s := newFixture(t)
	b := s.follow(parse(t, widgetsBySize))
	s.eventually("bound", func() bool { return len(b.Targets()) == 1 })
	target, err := b.Target("widgets")
	noError(t, err)
	matcher, err := query.NewMatcher(query.Greater("size", "5"), target.Resource.Indexes...)
	noError(t, err)
	events := make(chan query.Event, 100)
	if _, err := query.Subscribe(target.Informer, matcher, func(e query.Event) { events <- e }); err != nil {
		t.Fatal(err)
	}
	expectEvents := func(want ...string) {
		t.Helper()
		var got []string
		for range want {
			select {
			case e := <-events:
				got = append(got, string(e.Type)+" "+e.Key)
			case <-s.ctx.Done():
				t.Fatalf("timed out with the events %v, want %v", got, want)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	expectEvents("Added home/lamp", "Added home/table")
	apply(s.cluster, widget("chair", "red", 30))
	expectEvents("Added home/chair")
	apply(s.cluster, widget("chair", "blue", 30))
	expectEvents("Modified home/chair")
	apply(s.cluster, widget("chair", "blue", 1))
	expectEvents("Deleted home/chair")
}

// TestRemovedVersion verifies that a resource without version switches to another one when its version is no
// longer served.
func TestRemovedVersion(t *testing.T) {
	s := newFixture(t)
	binding := s.follow(parse(t, widgetsByColor))
	s.eventually("version v1 is bound", func() bool {
		return queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp")
	})
	graph, err := binding.References()
	noError(t, err)
	apply(s.cluster, strings.Replace(definition("example.com", "widgets", "Widget"), "name: v1,",
		"name: v2,", 1))
	s.eventually("version v2 is bound", func() bool {
		target, err := binding.Target("widgets")
		return err == nil && target.GVR.Version == "v2" && queryReturns(binding, "widgets", "color=red", "home/chair",
			"home/lamp") && graph.Stats().Informers == 1 && graph.Stats().Synced == 1
	})
	noError(t, binding.Apply(parse(t, widgetsBySize)))
	if target, err := binding.Target("widgets"); err != nil || target.GVR.Version != "v2" ||
		!queryReturns(binding, "widgets", "size=12", "home/table") {
		t.Errorf("Target after Apply = %v, %v; want version v2 with the new index", target, err)
	}
}
