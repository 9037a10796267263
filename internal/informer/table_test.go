package informer

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

// thing is an object of a table test: a key, an identity and its index values.
type thing struct {
	key    string
	number int
	tags   []string
}

// byTags indexes things by their tags, with the values as they come: repeated and in any order.
func byTags(obj any) ([]string, error) { return obj.(*thing).tags, nil }

// byParity indexes by one value.
func byParity(obj any) ([]string, error) { return []string{fmt.Sprint(obj.(*thing).number % 2)}, nil }

func failOnReport(t *testing.T) func(indexFailures) {
	return func(f indexFailures) { t.Errorf("index functions fail: %v", f) }
}

// tableModel is what a table should hold, kept in the plainest way.
type tableModel map[string]*thing

func (m tableModel) under(value string, fn cache.IndexFunc) []string {
	var keys []string
	for key, th := range m {
		if values, _ := fn(th); slices.Contains(values, value) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (m tableModel) values(fn cache.IndexFunc) []string {
	set := map[string]bool{}
	for _, th := range m {
		values, _ := fn(th)
		for _, v := range values {
			set[v] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// check compares a table with the model and its own insides.
func (m tableModel) check(t *testing.T, table *table, funcs cache.Indexers) {
	t.Helper()
	keys := table.Keys()
	slices.Sort(keys)
	if want := slices.Sorted(maps.Keys(m)); !slices.Equal(want, keys) || table.Len() != len(m) {
		t.Fatalf("%d keys %v, want %v", table.Len(), keys, want)
	}
	for key, th := range m {
		if got, ok := table.Get(key); !ok || got != Item(th) {
			t.Fatalf("%s holds %v, want %v", key, got, th)
		}
	}
	for name, fn := range funcs {
		values := table.IndexValues(name)
		slices.Sort(values)
		if !slices.Equal(m.values(fn), values) {
			t.Fatalf("values of %s: %v, want %v", name, values, m.values(fn))
		}
		for _, value := range append(values, "nowhere") {
			keys, err := table.KeysByIndex(name, value)
			items, ierr := table.ItemsByIndex(name, value)
			want := m.under(value, fn)
			if err != nil || ierr != nil || !slices.Equal(keys, want) || len(items) != len(want) {
				t.Fatalf("%s=%s: %v (%v), %d items (%v), want %v", name, value, keys, err, len(items), ierr, want)
			}
		}
	}
	checkRefs(t, table)
}

// checkRefs verifies that entries and buckets point at each other.
func checkRefs(t *testing.T, table *table) {
	t.Helper()
	refs, places := 0, 0
	for _, e := range table.items {
		for _, r := range e.refs {
			if refs++; r.bucket.entries[r.pos] != e {
				t.Fatalf("a ref of %s leads to another entry", e.key)
			}
		}
	}
	for _, x := range table.indexes {
		for value, b := range x.buckets {
			if len(b.entries) == 0 || b.value != value || b.index != x {
				t.Fatalf("index %s has an odd bucket for %q", x.name, value)
			}
			places += len(b.entries)
		}
	}
	if refs != places {
		t.Fatalf("%d refs lead to %d places", refs, places)
	}
}

// randomThing draws a thing whose tags may repeat or be missing.
func randomThing(r *rand.Rand) *thing {
	th := &thing{key: fmt.Sprint("k", r.IntN(12)), number: r.IntN(1000)}
	for range r.IntN(5) {
		th.tags = append(th.tags, fmt.Sprint("t", r.IntN(4)))
	}
	return th
}

func (th *thing) keyed() Keyed { return Keyed{Key: th.key, Object: th} }

func TestTableAgainstModel(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		funcs := cache.Indexers{"tags": byTags}
		table := newTable(funcs, failOnReport(t))
		model := tableModel{}
		for step := range 300 {
			switch op := r.IntN(20); {
			case op < 12:
				th := randomThing(r)
				before := model[th.key]
				old, ok := table.Put(table.PrepareOne(th.keyed()))
				if !ok || (old == nil) != (before == nil) || (before != nil && old != Item(before)) {
					t.Fatalf("seed %d, step %d: put %v over %v returns %v, %v", seed, step, th, before, old, ok)
				}
				model[th.key] = th
			case op < 17:
				key := fmt.Sprint("k", r.IntN(12))
				old := table.Remove(key, "")
				if before, was := model[key]; (old != nil) != was || (was && old != Item(before)) {
					t.Fatalf("seed %d, step %d: remove %s returns %v", seed, step, key, old)
				}
				delete(model, key)
			case op < 19:
				model = replaceRandomly(t, r, table, model)
			default:
				name := fmt.Sprint("parity", step)
				if err := table.AddIndexers(cache.Indexers{name: byParity}); err != nil {
					t.Fatal(err)
				}
				funcs = maps.Clone(funcs)
				funcs[name] = byParity
			}
			model.check(t, table, funcs)
		}
	}
}

// replaceRandomly replaces the content, with repeated keys, and checks the differences.
func replaceRandomly(t *testing.T, r *rand.Rand, table *table, model tableModel) tableModel {
	t.Helper()
	next := tableModel{}
	var list []Keyed
	for range r.IntN(15) {
		th := randomThing(r)
		next[th.key] = th
		list = append(list, th.keyed())
	}
	changes, ok := table.Replace(table.Prepare(list...), "")
	if !ok {
		t.Fatal("refused")
	}
	gone := true
	seen := map[string]bool{}
	for _, c := range changes {
		if seen[c.Key] {
			t.Fatalf("%s changes twice", c.Key)
		}
		seen[c.Key] = true
		if c.New != nil {
			gone = false
		} else if !gone {
			t.Fatal("a deletion comes after the new content")
		}
		was, is := model[c.Key], next[c.Key]
		if (c.Old == nil) != (was == nil) || (was != nil && c.Old != Item(was)) || (c.New == nil) != (is == nil) || (is != nil && c.New != Item(is)) {
			t.Fatalf("change %v, want %v to %v", c, was, is)
		}
	}
	for _, key := range slices.Concat(slices.Collect(maps.Keys(model)), slices.Collect(maps.Keys(next))) {
		if !seen[key] {
			t.Fatalf("%s does not show in the changes", key)
		}
	}
	return next
}

func TestTableRefusesWhatWasPreparedBeforeAnIndex(t *testing.T) {
	table := newTable(nil, failOnReport(t))
	th := &thing{key: "k", number: 1}
	stale := table.PrepareOne(th.keyed())
	if err := table.AddIndexers(cache.Indexers{"parity": byParity}); err != nil {
		t.Fatal(err)
	}
	if _, ok := table.Put(stale); ok {
		t.Error("an object without values for the new index was put")
	}
	if _, ok := table.Replace([]Prepared{stale}, "1"); ok || table.ResourceVersion() != "" {
		t.Error("a list without values for the new index was taken")
	}
}

func TestTableIndexErrors(t *testing.T) {
	table := newTable(cache.Indexers{"tags": byTags, "nothing": nil}, failOnReport(t))
	table.Put(table.PrepareOne((&thing{key: "k", tags: []string{"x"}}).keyed()))
	var notFound *IndexNotFoundError
	for what, err := range map[string]error{
		"items": second(table.ItemsByIndex("none", "x")),
		"keys":  second(table.KeysByIndex("none", "x")),
		"like":  second(table.ItemsByIndexOf("none", &thing{})),
	} {
		if !errors.As(err, &notFound) || notFound.Name != "none" || !strings.Contains(err.Error(), "none") {
			t.Errorf("%s of an unknown index: %v", what, err)
		}
	}
	if err := table.AddIndexers(cache.Indexers{"tags": byTags, "more": byTags}); err == nil {
		t.Error("an index was added twice")
	}
	if _, added := table.Indexers()["more"]; added {
		t.Error("a part of conflicting indexers was added")
	}
	if err := table.AddIndexers(nil); err != nil {
		t.Error(err)
	}
	if got := table.IndexValues("nothing"); len(got) != 0 {
		t.Errorf("an index without a function has values %v", got)
	}
}

func second[T any](_ T, err error) error { return err }

func TestItemsByIndexOf(t *testing.T) {
	table := newTable(cache.Indexers{"tags": byTags}, failOnReport(t))
	for _, th := range []*thing{{key: "a", tags: []string{"x"}}, {key: "b", tags: []string{"x", "y"}}, {key: "c", tags: []string{"z"}}} {
		table.Put(table.PrepareOne(th.keyed()))
	}
	for _, tc := range []struct {
		tags []string
		want int
	}{{nil, 0}, {[]string{"x"}, 2}, {[]string{"x", "y"}, 2}, {[]string{"y", "z", "z"}, 2}, {[]string{"none"}, 0}} {
		items, err := table.ItemsByIndexOf("tags", &thing{tags: tc.tags})
		if err != nil || len(items) != tc.want {
			t.Errorf("like %v: %d items, %v; want %d", tc.tags, len(items), err, tc.want)
		}
	}
}

// TestAddIndexersWhileWriting adds indexes while several writers are at work: in the end each must hold exactly
// what a table that always had it would hold, and no reader may see one half filled.
func TestAddIndexersWhileWriting(t *testing.T) {
	funcs := cache.Indexers{"tags": byTags}
	table := newTable(funcs, failOnReport(t))
	for n := range 500 {
		th := &thing{key: fmt.Sprint("fixed", n), number: n}
		table.Put(table.PrepareOne(th.keyed()))
	}
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	models := make([]tableModel, 3)
	for w := range models {
		models[w] = tableModel{}
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
					table.Remove(th.key, "")
					delete(models[w], th.key)
					continue
				}
				for {
					if _, ok := table.Put(table.PrepareOne(th.keyed())); ok {
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
			for name := range table.Indexers() {
				even, err := table.KeysByIndex(name, "0")
				fixed := slices.DeleteFunc(even, func(key string) bool { return !strings.HasPrefix(key, "fixed") })
				if err == nil && name != "tags" && len(fixed) != 250 {
					t.Errorf("a reader finds %d of 250 objects in %s", len(fixed), name)
				}
			}
		}
	})
	for n := range 30 {
		name := fmt.Sprint("parity", n)
		if err := table.AddIndexers(cache.Indexers{name: byParity}); err != nil {
			t.Error(err)
		}
		funcs[name] = byParity
	}
	close(stop)
	writers.Wait()
	readers.Wait()
	model := tableModel{}
	for _, m := range models {
		maps.Copy(model, m)
	}
	for n := range 500 {
		key := fmt.Sprint("fixed", n)
		item, _ := table.Get(key)
		model[key] = item.(*thing)
	}
	model.check(t, table, funcs)
}

func TestReplaceWhileAnIndexIsAdded(t *testing.T) {
	entered, gate := make(chan struct{}), make(chan struct{})
	slow := func(obj any) ([]string, error) {
		if obj.(*thing).key == "old" {
			close(entered)
			<-gate
		}
		return byParity(obj)
	}
	table := newTable(nil, failOnReport(t))
	table.Put(table.PrepareOne((&thing{key: "old", number: 2}).keyed()))
	added := make(chan error, 1)
	go func() { added <- table.AddIndexers(cache.Indexers{"parity": slow}) }() // ended by the gate
	<-entered
	model := tableModel{"new": {key: "new", number: 4}}
	if _, ok := table.Replace(table.Prepare(model["new"].keyed()), "1"); !ok {
		t.Error("refused")
	}
	if _, err := table.ItemsByIndex("parity", "0"); err == nil {
		t.Error("an index shows before it is complete")
	}
	close(gate)
	if err := <-added; err != nil {
		t.Fatal(err)
	}
	model.check(t, table, cache.Indexers{"parity": byParity})
}

// TestReadsSeeWholeRelists reads while lists of two sizes alternate: any other size is a mixture.
func TestReadsSeeWholeRelists(t *testing.T) {
	table := newTable(cache.Indexers{"parity": byParity}, failOnReport(t))
	lists := make([][]Keyed, 2)
	for k, size := range []int{100, 300} {
		for n := range size {
			lists[k] = append(lists[k], (&thing{key: fmt.Sprint(k, "-", n), number: 2 * n}).keyed())
		}
	}
	table.Replace(table.Prepare(lists[0]...), "0")
	done := make(chan struct{})
	go func() { // ends after its lists
		defer close(done)
		for n := range 200 {
			table.Replace(table.Prepare(lists[n%2]...), fmt.Sprint(n))
		}
	}()
	for {
		items, err := table.ItemsByIndex("parity", "0")
		if n, m := len(table.Items()), len(items); (n != 100 && n != 300) || (m != 100 && m != 300) || err != nil {
			t.Errorf("a reader finds %d objects and %d in the index", n, m)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestLargeBucketsShrink(t *testing.T) {
	table := newTable(cache.Indexers{"parity": byParity}, failOnReport(t))
	for n := range 1000 {
		table.Put(table.PrepareOne((&thing{key: fmt.Sprint(n), number: 2}).keyed()))
	}
	for n := range 990 {
		table.Remove(fmt.Sprint(n), "")
	}
	if got := cap(table.published["parity"].buckets["0"].entries); got > 64 {
		t.Errorf("a bucket of 10 objects keeps room for %d", got)
	}
	checkRefs(t, table)
}
