package query

import (
	"slices"
	"strings"

	"github.com/crdcache/crdcache/indexers"
)

// compareKeys orders by namespace, and then by name. What has no namespace comes first.
func compareKeys(a, b string) int {
	nsA, nameA, ok := strings.Cut(a, "/")
	if !ok {
		nsA, nameA = "", a
	}
	nsB, nameB, ok := strings.Cut(b, "/")
	if !ok {
		nsB, nameB = "", b
	}
	if c := strings.Compare(nsA, nsB); c != 0 {
		return c
	}
	return strings.Compare(nameA, nameB)
}

func sortEntries(entries []entry) {
	slices.SortFunc(entries, func(a, b entry) int { return compareKeys(a.key, b.key) })
}

// byKey gives the objects in the order of namespace and name.
func (x *execution) byKey(out *output) {
	var entries []entry
	x.candidates(func(key string, item any) bool {
		if !x.from.set || compareKeys(key, x.from.Key) > 0 {
			entries = append(entries, entry{key, item})
		}
		return true
	})
	sortEntries(entries)
	for _, e := range entries {
		if !out.add(e, token{Key: e.key}) {
			return
		}
	}
}

// byIndex gives the objects in the order of an index: those with a value, and then the others.
func (x *execution) byIndex(out *output) {
	w := &walk{execution: x, out: out}
	// Where few objects are left, they are gathered first; else each that the index leads to is tested.
	if x.driven && x.driver.count() < x.snapshot.Len()/2 {
		w.wanted = map[string]any{}
		x.candidates(func(key string, item any) bool {
			w.wanted[key] = item
			return true
		})
	}
	if !x.sort.single() {
		w.seen = map[string]struct{}{}
	}
	if w.values() && x.err == nil {
		w.others()
	}
}

// walk goes along an index.
type walk struct {
	*execution
	out    *output
	wanted map[string]any      // the objects that are left; nil while each has to be tested
	seen   map[string]struct{} // the objects that came already, where one can come twice
}

// values gives the objects that have a value. It is false when no more are wanted.
func (w *walk) values() bool {
	if w.from.set && w.from.Rest {
		return true
	}
	low, high := "", ""
	if w.from.set && w.seen == nil { // what came on earlier pages need not be passed again
		low = w.from.Value
		if w.options.Descending {
			low, high = "", w.from.Value+"\x00"
		}
	}
	more := true
	w.sort.Keys(low, high, w.options.Descending, func(value string, _ int) bool {
		if value == indexers.Null && !w.sort.composite() {
			return true
		}
		more = w.value(value)
		return more
	})
	return more
}

// value gives the objects with one value.
func (w *walk) value(value string) bool {
	var entries []entry
	w.sort.Objects(value, func(key string, item any) bool {
		if !w.goOn() {
			return false
		}
		if w.seen != nil {
			if _, again := w.seen[key]; again {
				return true
			}
			w.seen[key] = struct{}{}
		}
		if w.passed(value, key) {
			return true
		}
		if w.wants(key, item) {
			entries = append(entries, entry{key, item})
		}
		return true
	})
	sortEntries(entries)
	for _, e := range entries {
		if !w.out.add(e, token{Value: value, Key: e.key}) {
			return false
		}
	}
	return w.err == nil
}

// passed reports whether an object came on an earlier page.
func (w *walk) passed(value, key string) bool {
	if !w.from.set {
		return false
	}
	c := strings.Compare(value, w.from.Value)
	if w.options.Descending {
		c = -c
	}
	return c < 0 || c == 0 && compareKeys(key, w.from.Key) <= 0
}

func (w *walk) wants(key string, item any) bool {
	if w.wanted != nil {
		_, ok := w.wanted[key]
		return ok
	}
	switch parts := w.driver.parts; {
	case !w.driven:
	case len(parts) == 1:
		if !parts[0].holds(key, item) {
			return false
		}
	default: // the driver is not one condition of the query
		return w.cond.holds(key, item)
	}
	return holdAll(w.cheap, key, item)
}

// others gives the objects without a value.
func (w *walk) others() {
	have := map[string]struct{}{}
	w.sort.Keys("", "", false, func(value string, _ int) bool {
		if value != indexers.Null || w.sort.composite() {
			w.sort.Objects(value, func(key string, _ any) bool {
				have[key] = struct{}{}
				return true
			})
		}
		return true
	})
	var entries []entry
	add := func(key string, item any) bool {
		_, has := have[key]
		if !has && (!w.from.set || !w.from.Rest || compareKeys(key, w.from.Key) > 0) {
			entries = append(entries, entry{key, item})
		}
		return true
	}
	if w.wanted == nil {
		w.candidates(add)
	}
	for key, item := range w.wanted {
		add(key, item)
	}
	sortEntries(entries)
	for _, e := range entries {
		if !w.out.add(e, token{Rest: true, Key: e.key}) {
			return
		}
	}
}
