package query

import (
	"slices"

	"github.com/crdcache/crdcache/indexers"
)

// arrangement is how objects come into their order.
type arrangement uint8

const (
	// gathering looks at what is found and sorts it.
	gathering arrangement = iota
	// walking follows an index, which has the order, and stops when there are enough objects.
	walking
)

// located is an object with its place.
type located struct {
	entry
	place
}

// arrange gives the objects in order, until there are enough.
func (x *execution) arrange(out *output) {
	if x.arrangement() == gathering {
		x.gather(out)
		return
	}
	w := &walk{execution: x, out: out, term: x.order[0], budget: x.sortWork()}
	w.run()
	if w.exhausted && x.err == nil { // the order and the query have little in common
		if len(out.entries) > 0 {
			x.from = token{place: out.last, set: true}
		}
		x.gather(out)
	}
}

// sortWork is the work of sorting what is found, in looks at an index.
func (x *execution) sortWork() int {
	if len(x.order) == 0 || x.order[0].index == nil {
		return 0
	}
	return x.candidateCount() * x.order[0].index.rereading()
}

// arrangement chooses the way that costs less: to sort what is found, or to go along the index until there
// are enough. The latter is a guess, because what is found may be anywhere in the order.
func (x *execution) arrangement() arrangement {
	if len(x.order) != 1 || x.order[0].index == nil {
		return gathering
	}
	objects, found := x.snapshot.Len(), x.candidateCount()
	steps := objects + found
	if limit := x.options.Limit; limit > 0 && found > 0 {
		steps = min(steps, (limit+1)*objects/found)
	}
	if x.sortWork() <= steps {
		return gathering
	}
	return walking
}

// gather sorts all that is found.
func (x *execution) gather(out *output) {
	of := x.places()
	var all []located
	x.candidates(func(key string, item any) bool {
		at := of(key, item)
		if !x.from.set || x.order.compare(at, x.from.place) > 0 {
			all = append(all, located{entry{key, item}, at})
		}
		return true
	})
	x.emit(out, all)
}

// emit sorts objects and gives them; it is false when no more are wanted.
func (x *execution) emit(out *output, all []located) bool {
	slices.SortFunc(all, func(a, b located) int {
		if !x.work(1) {
			return 0 // nobody waits for the order
		}
		return x.order.compare(a.place, b.place)
	})
	for _, l := range all {
		if !out.add(l.entry, l.place) {
			return false
		}
	}
	return x.err == nil
}

// places gives what an object is sorted by. Where many objects are found, an index is gone through for it
// once.
func (x *execution) places() func(key string, item any) place {
	of, work := make([]func(string, any) sortValue, len(x.order)), len(x.order)
	for i, t := range x.order {
		if t.body {
			work += bodyWork
		}
		of[i] = t.of
		if t.index == nil {
			continue
		}
		if factor := t.index.rereading(); x.candidateCount()*factor <= x.snapshot.Len() {
			work += factor
		} else {
			first := x.firstKeys(t)
			of[i] = func(key string, _ any) sortValue {
				v, ok := first[key]
				return sortValue{v, ok}
			}
		}
	}
	var room []sortValue // for many objects at once
	return func(key string, item any) place {
		if len(room) < len(of) {
			room = make([]sortValue, min(64, max(x.candidateCount(), 1))*len(of))
		}
		values := room[:len(of):len(of)]
		room = room[len(of):]
		for i := range of {
			values[i] = of[i](key, item)
		}
		x.work(work)
		return place{values, key}
	}
}

// firstKeys gives the first key of all objects that have one.
func (x *execution) firstKeys(t term) map[string]string {
	first := map[string]string{}
	t.index.Keys("", "", t.descending, func(value string, _ int) bool {
		if value == indexers.Null && !t.index.composite() {
			return x.work(1)
		}
		t.index.Objects(value, func(key string, _ any) bool {
			if _, again := first[key]; !again {
				first[key] = value
			}
			return x.work(1)
		})
		return !x.ended()
	})
	return first
}

// walk goes along the index of the only term.
type walk struct {
	*execution
	out  *output
	term term
	// budget is how many objects may be looked at; exhausted is set when there were more.
	budget    int
	exhausted bool
	wanted    map[string]any      // the objects that are left; nil while each has to be tested
	seen      map[string]struct{} // the objects that came already, where one can come twice
}

func (w *walk) run() {
	if w.options.Limit == 0 {
		w.budget = 0
	}
	// Where few objects are left, they are gathered first; else each that the index leads to is tested.
	if w.driven && w.options.Limit == 0 && w.driver.count() < w.snapshot.Len()/2 {
		w.wanted = map[string]any{}
		w.candidates(func(key string, item any) bool {
			w.wanted[key] = item
			return true
		})
	}
	if !w.term.index.single() {
		w.seen = map[string]struct{}{}
	}
	if w.values() && w.err == nil {
		w.others()
	}
}

// values gives the objects that have a value. It is false when no more are wanted.
func (w *walk) values() bool {
	low, high := "", ""
	if w.from.set {
		last := w.from.values[0]
		if !last.present {
			return true
		}
		switch {
		case w.seen != nil: // what came on earlier pages has to be passed again
		case w.term.descending:
			high = last.key + "\x00"
		default:
			low = last.key
		}
	}
	more := true
	w.term.index.Keys(low, high, w.term.descending, func(value string, _ int) bool {
		if value == indexers.Null && !w.term.index.composite() {
			return true
		}
		more = w.value(value)
		return more
	})
	return more
}

// value gives the objects with one value.
func (w *walk) value(value string) bool {
	var all []located
	w.term.index.Objects(value, func(key string, item any) bool {
		if !w.goOn() || w.overdrawn() {
			return false
		}
		if w.seen != nil {
			if _, again := w.seen[key]; again {
				return true
			}
			w.seen[key] = struct{}{}
		}
		at := place{[]sortValue{{value, true}}, key}
		if w.from.set && w.order.compare(at, w.from.place) <= 0 {
			return true // it came on an earlier page
		}
		if w.wants(key, item) {
			all = append(all, located{entry{key, item}, at})
		}
		return !w.ended()
	})
	return !w.exhausted && w.emit(w.out, all)
}

// overdrawn reports whether too many objects have been looked at for what was found.
func (w *walk) overdrawn() bool {
	w.exhausted = w.driven && w.budget > 0 && w.tested > w.budget
	return w.exhausted
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
	have := w.firstKeys(w.term)
	if len(have) == w.snapshot.Len() {
		return
	}
	var all []located
	add := func(key string, item any) bool {
		at := place{[]sortValue{{}}, key}
		if _, has := have[key]; !has && (!w.from.set || w.order.compare(at, w.from.place) > 0) {
			all = append(all, located{entry{key, item}, at})
		}
		return w.work(1)
	}
	if w.wanted == nil {
		w.candidates(add)
	}
	for key, item := range w.wanted {
		add(key, item)
	}
	w.emit(w.out, all)
}

// sortText says how the objects come into their order; empty where they need not be sorted by anything.
func (x *execution) sortText() string {
	switch {
	case len(x.order) == 0:
		return ""
	case x.arrangement() == gathering:
		return "what is found: " + atMost(x.candidateCount())
	case x.options.Limit > 0:
		return "along " + x.order[0].name + " until " + count(x.options.Limit, "object") + " came"
	}
	return "along " + x.order[0].name + ", all of it"
}

func atMost(objects int) string { return "at most " + count(objects, "object") }
