package bind_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

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

// TestQueriesWhileRedefiningAnIndex verifies that queries succeed while an index changes: each uses either
// the old or the new declaration.
func TestQueriesWhileRedefiningAnIndex(t *testing.T) {
	s := newFixture(t)
	binding := s.follow(parse(t, widgetsByColor))
	s.eventually("bound", func() bool { return queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp") })
	querier, err := binding.Querier("widgets")
	if err != nil {
		t.Fatal(err)
	}
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
