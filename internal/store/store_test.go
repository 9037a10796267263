package store

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/cache"
)

// thing is an object with a key, an identity and index values.
type thing struct {
	key    string
	number int
	tags   []string
}

// byTags indexes things by their tags, with duplicates and in any order.
func byTags(obj any) ([]string, error) { return obj.(*thing).tags, nil }

func byParity(obj any) ([]string, error) { return []string{fmt.Sprint(obj.(*thing).number % 2)}, nil }

// newStore returns a store and fails the test if an index function fails.
func newStore(t *testing.T, indexers cache.Indexers) *Store {
	return New(Options{Indexers: indexers,
		Report: func(f Failures) { t.Errorf("index functions fail: %v", f) }})
}

// contents is the expected content of a store, by key.
type contents map[string]*thing

func (m contents) keysWithValue(value string, fn cache.IndexFunc) []string {
	var keys []string
	for key, th := range m {
		if values, _ := fn(th); slices.Contains(values, value) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (m contents) values(fn cache.IndexFunc) []string {
	set := map[string]bool{}
	for _, th := range m {
		values, _ := fn(th)
		for _, v := range values {
			set[v] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// check compares a store with the model.
func (m contents) check(t *testing.T, store *Store, funcs cache.Indexers) {
	t.Helper()
	keys := store.Snapshot().Keys()
	slices.Sort(keys)
	if want := slices.Sorted(maps.Keys(m)); !slices.Equal(want, keys) || store.Snapshot().Len() != len(m) {
		t.Fatalf("%d keys %v, want %v", store.Snapshot().Len(), keys, want)
	}
	for key, th := range m {
		if got, ok := store.Snapshot().Get(key); !ok || got != Item(th) {
			t.Fatalf("%s holds %v, want %v", key, got, th)
		}
	}
	for name, fn := range funcs {
		values := store.Snapshot().IndexValues(name)
		slices.Sort(values)
		if !slices.Equal(m.values(fn), values) {
			t.Fatalf("values of %s: %v, want %v", name, values, m.values(fn))
		}
		for _, value := range append(values, "nowhere") {
			keys, err := store.Snapshot().KeysByIndex(name, value)
			items, ierr := store.Snapshot().ItemsByIndex(name, value)
			want := m.keysWithValue(value, fn)
			if err != nil || ierr != nil || !slices.Equal(keys, want) || len(items) != len(want) {
				t.Fatalf("%s=%s: %v (%v), %d items (%v), want %v", name, value, keys, err,
					len(items), ierr, want)
			}
		}
	}
}

// randomThing returns a thing with repeated or missing tags.
func randomThing(r *rand.Rand) *thing {
	th := &thing{key: fmt.Sprint("k", r.IntN(12)), number: r.IntN(1000)}
	for range r.IntN(5) {
		th.tags = append(th.tags, fmt.Sprint("t", r.IntN(4)))
	}
	return th
}

func (th *thing) keyed() KeyedItem { return KeyedItem{Key: th.key, Item: th} }

func TestStoreAgainstModel(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		funcs := cache.Indexers{"tags": byTags}
		store := newStore(t, funcs)
		model := contents{}
		for step := range 300 {
			switch op := r.IntN(20); {
			case op < 12:
				th := randomThing(r)
				before := model[th.key]
				old, ok := store.Put(store.Prepare(th.keyed()))
				if !ok || (old == nil) != (before == nil) || (before != nil && old != Item(before)) {
					t.Fatalf("seed %d, step %d: put %v over %v returns %v, %v", seed, step, th,
						before, old, ok)
				}
				model[th.key] = th
			case op < 17:
				key := fmt.Sprint("k", r.IntN(12))
				old := store.Remove(key, "")
				if before, was := model[key]; (old != nil) != was || (was && old != Item(before)) {
					t.Fatalf("seed %d, step %d: remove %s returns %v", seed, step, key, old)
				}
				delete(model, key)
			case op < 19:
				var list []*thing
				for range r.IntN(15) {
					list = append(list, randomThing(r))
				}
				model = replaceContents(t, store, model, list)
			default:
				name := fmt.Sprint("parity", step)
				must(t, store.AddIndexers(cache.Indexers{name: byParity}))
				funcs = maps.Clone(funcs)
				funcs[name] = byParity
			}
			model.check(t, store, funcs)
		}
	}
}

// TestListsWithFewChanges replaces the content by lists that differ little from it, in any order, and with
// repeated keys.
func TestListsWithFewChanges(t *testing.T) {
	withHashMasks(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		funcs := cache.Indexers{"tags": byTags, "parity": byParity}
		store := New(Options{Indexers: funcs, Format: pointerFormat{New(Options{}).Format()}})
		model, shared := contents{}, 0
		for n := range 300 {
			key, tag := fmt.Sprint("k", n), fmt.Sprint("t", n%7)
			model[key] = &thing{key: key, number: n, tags: []string{tag}}
		}
		model = replaceContents(t, store, contents{}, slices.Collect(maps.Values(model)))
		for step := range 60 {
			list := slices.SortedFunc(maps.Values(model),
				func(a, b *thing) int { return strings.Compare(a.key, b.key) })
			if step%3 == 0 {
				r.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
			}
			for range r.IntN(12) {
				switch at := r.IntN(len(list)); r.IntN(4) {
				case 0:
					list = slices.Delete(list, at, at+1)
				case 1:
					list = slices.Insert(list, at, &thing{key: fmt.Sprint("new", step, at), number: step})
				default:
					tags := []string{"t3", fmt.Sprint("t", r.IntN(9))}
					list[at] = &thing{key: list[at].key, number: r.IntN(9), tags: tags}
				}
			}
			if step%4 == 3 {
				list = append(list, &thing{key: list[r.IntN(len(list))].key, number: step})
			}
			before := store.Snapshot().rows.inner
			model = replaceContents(t, store, model, list)
			model.check(t, store, funcs)
			for k, child := range store.Snapshot().rows.inner.children {
				if child == before.children[k] {
					shared++
				}
			}
		}
		if hashMask == ^uint64(0) && shared < 300 {
			t.Errorf("60 lists share %d of 960 nodes with the content before, want at least 300", shared)
		}
	})
}

// TestRemovedKeyWithTheHashOfAnother verifies that such an object does not stay.
func TestRemovedKeyWithTheHashOfAnother(t *testing.T) {
	defer func() { hashMask = ^uint64(0) }()
	hashMask = 0xfff
	used := map[uint64]bool{}
	var list []*thing
	var other *thing
	for n := 0; len(list) < 40 || other == nil; n++ {
		next := &thing{key: fmt.Sprint("k", n)}
		if used[hashOf(next.key)] {
			other = next
		} else {
			used[hashOf(next.key)] = true
			list = append(list, next)
		}
	}
	store := New(Options{Format: pointerFormat{New(Options{}).Format()}})
	model := replaceContents(t, store, contents{}, append([]*thing{other}, list...))
	replaceContents(t, store, model, list).check(t, store, nil)
}

// pointerFormat takes objects for unchanged if they are the same.
type pointerFormat struct{ Format }

func (pointerFormat) Same(a, b Item) bool { return a == b }

// replaceContents replaces the content by a list, and checks the differences.
func replaceContents(t *testing.T, store *Store, model contents, things []*thing) contents {
	t.Helper()
	next := contents{}
	var list []KeyedItem
	for _, th := range things {
		next[th.key] = th
		list = append(list, th.keyed())
	}
	changes, ok := store.Replace(store.PrepareAll(list), "")
	if !ok {
		t.Fatal("Replace() = false, want true")
	}
	gone := true
	seen := map[string]bool{}
	for n := range changes.Len() {
		c := changes.At(n)
		if seen[c.Key] {
			t.Fatalf("Replace reports the key %s twice", c.Key)
		}
		seen[c.Key] = true
		if c.New != nil {
			gone = false
		} else if !gone {
			t.Fatal("Replace reports a deletion after other changes")
		}
		was, is := model[c.Key], next[c.Key]
		if (c.Old == nil) != (was == nil) || (was != nil && c.Old != Item(was)) ||
			(c.New == nil) != (is == nil) || (is != nil && c.New != Item(is)) {
			t.Fatalf("change %v, want %v to %v", c, was, is)
		}
	}
	for _, key := range slices.Concat(slices.Collect(maps.Keys(model)), slices.Collect(maps.Keys(next))) {
		if !seen[key] {
			t.Fatalf("Replace does not report the key %s", key)
		}
	}
	return next
}

func TestPutRejectsMissingIndex(t *testing.T) {
	store := newStore(t, nil)
	th := &thing{key: "k", number: 1}
	stale := store.Prepare(th.keyed())
	batch := store.PrepareAll([]KeyedItem{th.keyed()})
	must(t, store.AddIndexers(cache.Indexers{"parity": byParity}))
	if _, ok := store.Put(stale); ok {
		t.Error("Put accepted an object without values for the new index")
	}
	if _, ok := store.Replace(batch, "1"); ok || store.Snapshot().ResourceVersion() != "" {
		t.Error("Replace accepted a list without values for the new index")
	}
}

func TestStoreIndexErrors(t *testing.T) {
	store := newStore(t, cache.Indexers{"tags": byTags, "nothing": nil})
	store.Put(store.Prepare((&thing{key: "k", tags: []string{"x"}}).keyed()))
	var notFound *IndexNotFoundError
	for what, err := range map[string]error{
		"items": errorOf(store.Snapshot().ItemsByIndex("none", "x")),
		"keys":  errorOf(store.Snapshot().KeysByIndex("none", "x")),
		"like":  errorOf(store.Snapshot().ItemsByIndexOf("none", &thing{})),
	} {
		if !errors.As(err, &notFound) || notFound.Name != "none" || !strings.Contains(err.Error(), "none") {
			t.Errorf("%s of an unknown index: error %v, want a not-found error with its name", what, err)
		}
	}
	if err := store.AddIndexers(cache.Indexers{"tags": byTags, "more": byTags}); err == nil {
		t.Error("AddIndexers added an existing index")
	}
	if _, added := store.Snapshot().Indexers()["more"]; added {
		t.Error("AddIndexers added one of several conflicting indexes")
	}
	if err := store.AddIndexers(nil); err != nil {
		t.Error(err)
	}
	if got := store.Snapshot().IndexValues("nothing"); len(got) != 0 {
		t.Errorf("IndexValues of an unknown index = %v, want none", got)
	}
}

func errorOf[T any](_ T, err error) error { return err }

// TestAddIndexersWhileWriting adds indexes while several writers are active. In the end each index is
// complete, and no reader sees an incomplete one.
func TestAddIndexersWhileWriting(t *testing.T) {
	funcs := cache.Indexers{"tags": byTags}
	store := newStore(t, funcs)
	for n := range 500 {
		th := &thing{key: fmt.Sprint("fixed", n), number: n}
		store.Put(store.Prepare(th.keyed()))
	}
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	models := make([]contents, 3)
	for w := range models {
		models[w] = contents{}
		writers.Go(func() { // ended by stop
			r := rand.New(rand.NewPCG(uint64(w), 2))
			for {
				select {
				case <-stop:
					return
				default:
				}
				th := randomThing(r)
				th.key = fmt.Sprint(w, "-", th.key)
				if r.IntN(4) == 0 {
					store.Remove(th.key, "")
					delete(models[w], th.key)
					continue
				}
				for {
					if _, ok := store.Put(store.Prepare(th.keyed())); ok {
						break
					}
				}
				models[w][th.key] = th
			}
		})
	}
	readers.Go(func() { // ended by stop
		for {
			select {
			case <-stop:
				return
			default:
			}
			for name := range store.Snapshot().Indexers() {
				even, err := store.Snapshot().KeysByIndex(name, "0")
				fixed := slices.DeleteFunc(even,
					func(key string) bool { return !strings.HasPrefix(key, "fixed") })
				if err == nil && name != "tags" && len(fixed) != 250 {
					t.Errorf("a reader found %d of 250 objects in index %s", len(fixed), name)
				}
			}
		}
	})
	for n := range 30 {
		name := fmt.Sprint("parity", n)
		if err := store.AddIndexers(cache.Indexers{name: byParity}); err != nil {
			t.Error(err)
		}
		funcs[name] = byParity
	}
	close(stop)
	writers.Wait()
	readers.Wait()
	model := contents{}
	for _, m := range models {
		maps.Copy(model, m)
	}
	for n := range 500 {
		key := fmt.Sprint("fixed", n)
		item, _ := store.Snapshot().Get(key)
		model[key] = item.(*thing)
	}
	model.check(t, store, funcs)
}

func TestReplaceWhileAnIndexIsAdded(t *testing.T) {
	entered, gate, added := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	slow := func(obj any) ([]string, error) {
		if obj.(*thing).key == "old" {
			close(entered)
			<-gate
		}
		return byParity(obj)
	}
	store := newStore(t, nil)
	store.Put(store.Prepare((&thing{key: "old", number: 2}).keyed()))
	go func() { added <- store.AddIndexers(cache.Indexers{"parity": slow}) }() // ended by the gate
	<-entered
	model := contents{"new": {key: "new", number: 4}}
	if _, ok := store.Replace(store.PrepareAll([]KeyedItem{model["new"].keyed()}), "1"); !ok {
		t.Error("Replace() = false, want true")
	}
	if _, err := store.Snapshot().ItemsByIndex("parity", "0"); err == nil {
		t.Error("an incomplete index is visible")
	}
	close(gate)
	must(t, <-added)
	model.check(t, store, cache.Indexers{"parity": byParity})
}

// TestRelistsAreAtomic reads while lists of two sizes alternate. Any other size would be a mixture of two
// lists.
func TestRelistsAreAtomic(t *testing.T) {
	store := newStore(t, cache.Indexers{"parity": byParity})
	lists := make([][]KeyedItem, 2)
	for k, size := range []int{100, 300} {
		for n := range size {
			lists[k] = append(lists[k], (&thing{key: fmt.Sprint(k, "-", n), number: 2 * n}).keyed())
		}
	}
	store.Replace(store.PrepareAll(lists[0]), "0")
	done := make(chan struct{})
	go func() { // ends after its lists
		defer close(done)
		for n := range 200 {
			store.Replace(store.PrepareAll(lists[n%2]), fmt.Sprint(n))
		}
	}()
	for {
		items, err := store.Snapshot().ItemsByIndex("parity", "0")
		if n, m := len(store.Snapshot().Items()), len(items); (n != 100 && n != 300) ||
			(m != 100 && m != 300) || err != nil {
			t.Errorf("a reader found %d objects and %d in the index, want 100 or 300", n, m)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}
