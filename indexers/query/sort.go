package query

import (
	"slices"

	"github.com/crdcache/crdcache/indexers"
)

type positionedEntry struct {
	entry
	position
}

// sortInto adds the objects to out in order, until it is full.
func (x *execution) sortInto(out *output) {
	if !x.walksIndex() {
		x.gather(out)
		return
	}
	w := &walk{execution: x, out: out, term: x.order[0], budget: x.sortWork()}
	w.run()
	if w.exhausted && x.err == nil { // too few objects along the index match
		if len(out.entries) > 0 {
			x.start = cursor{position: out.last, set: true}
		}
		x.gather(out)
	}
}

// sortWork is the cost of sorting the candidates, in index lookups.
func (x *execution) sortWork() int {
	if len(x.order) == 0 || x.order[0].index == nil {
		return 0
	}
	return x.candidateCount() * x.order[0].index.keyCost()
}

// walksIndex reports whether walking an index in its order, up to the limit, is cheaper than sorting all
// candidates. The cost of walking is an estimate, because the matching objects can be anywhere in the order.
func (x *execution) walksIndex() bool {
	if len(x.order) != 1 || x.order[0].index == nil {
		return false
	}
	objects, found := x.snapshot.Len(), x.candidateCount()
	steps := objects + found
	if limit := x.options.Limit; limit > 0 && found > 0 {
		steps = min(steps, (limit+1)*objects/found)
	}
	return x.sortWork() > steps
}

func (x *execution) gather(out *output) {
	valueFuncs := x.positions()
	var entries []positionedEntry
	x.candidates(func(key string, item any) bool {
		at := valueFuncs(key, item)
		if !x.start.set || x.order.compare(at, x.start.position) > 0 {
			entries = append(entries, positionedEntry{entry{key, item}, at})
		}
		return true
	})
	x.emit(out, entries)
}

// emit sorts objects and adds them to out. It returns false if out is full.
func (x *execution) emit(out *output, entries []positionedEntry) bool {
	slices.SortFunc(entries, func(a, b positionedEntry) int {
		if !x.spend(1) {
			return 0 // cancelled: the order does not matter
		}
		return x.order.compare(a.position, b.position)
	})
	for _, l := range entries {
		if !out.add(l.entry, l.position) {
			return false
		}
	}
	return x.err == nil
}

// positions returns a function that returns the position of an object. For many candidates it reads an index
// once instead of computing keys for each object.
func (x *execution) positions() func(key string, item any) position {
	valueFuncs, work := make([]func(string, any) sortValue, len(x.order)), len(x.order)
	for i, t := range x.order {
		if t.readsBody {
			work += bodyWork
		}
		valueFuncs[i] = t.valueOf
		if t.index == nil {
			continue
		}
		if factor := t.index.keyCost(); x.candidateCount()*factor <= x.snapshot.Len() {
			work += factor
		} else {
			first := x.firstKeys(t)
			valueFuncs[i] = func(key string, _ any) sortValue {
				v, ok := first[key]
				return sortValue{v, ok}
			}
		}
	}
	var pool []sortValue // allocated in batches
	return func(key string, item any) position {
		if len(pool) < len(valueFuncs) {
			pool = make([]sortValue, min(64, max(x.candidateCount(), 1))*len(valueFuncs))
		}
		values := pool[:len(valueFuncs):len(valueFuncs)]
		pool = pool[len(valueFuncs):]
		for i := range valueFuncs {
			values[i] = valueFuncs[i](key, item)
		}
		x.spend(work)
		return position{values, key}
	}
}

// firstKeys maps each object with a value to its first key.
func (x *execution) firstKeys(t term) map[string]string {
	first := map[string]string{}
	t.index.Keys("", "", t.descending, func(value string, _ int) bool {
		if value == indexers.Null && !t.index.composite() {
			return x.spend(1)
		}
		t.index.Objects(value, func(key string, _ any) bool {
			if _, duplicate := first[key]; !duplicate {
				first[key] = value
			}
			return x.spend(1)
		})
		return !x.ended()
	})
	return first
}

// walk walks the index of the only sort term.
type walk struct {
	*execution
	out  *output
	term term
	// budget is the number of objects that a walk with a limit tests before it stops and sets exhausted.
	budget    int
	exhausted bool
	seen      map[string]struct{} // objects seen so far, if one can have several values
}

func (w *walk) run() {
	if !w.term.index.isSingleValued() {
		w.seen = map[string]struct{}{}
	}
	if w.withValues() && w.err == nil {
		w.withoutValue()
	}
}

// withValues adds the objects that have a value. It returns false if out is full.
func (w *walk) withValues() bool {
	low, high := "", ""
	if w.start.set {
		last := w.start.values[0]
		if !last.present {
			return true
		}
		switch {
		case w.seen != nil: // objects of earlier pages have to be seen again
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
		more = w.withValue(value)
		return more
	})
	return more
}

func (w *walk) withValue(withValue string) bool {
	var entries []positionedEntry
	w.term.index.Objects(withValue, func(key string, item any) bool {
		if !w.countTested() || w.overBudget() {
			return false
		}
		if w.seen != nil {
			if _, duplicate := w.seen[key]; duplicate {
				return true
			}
			w.seen[key] = struct{}{}
		}
		at := position{[]sortValue{{withValue, true}}, key}
		if w.start.set && w.order.compare(at, w.start.position) <= 0 {
			return true // on an earlier page
		}
		if w.accepts(key, item) {
			entries = append(entries, positionedEntry{entry{key, item}, at})
		}
		return !w.ended()
	})
	return !w.exhausted && w.emit(w.out, entries)
}

// overBudget reports whether too many objects were tested for the number found.
func (w *walk) overBudget() bool {
	w.exhausted = w.hasDriver && w.options.Limit > 0 && w.examined > w.budget
	return w.exhausted
}

func (w *walk) accepts(key string, item any) bool {
	switch parts := w.driver.parts; {
	case !w.hasDriver:
	case len(parts) == 1:
		if !parts[0].holds(key, item) {
			return false
		}
	default: // the driver is not a single condition
		return w.cond.holds(key, item)
	}
	return allHold(w.cheap, key, item)
}

// withoutValue adds the objects without a value.
func (w *walk) withoutValue() {
	have := w.firstKeys(w.term)
	if len(have) == w.snapshot.Len() {
		return
	}
	var entries []positionedEntry
	w.candidates(func(key string, item any) bool {
		at := position{[]sortValue{{}}, key}
		if _, has := have[key]; !has && (!w.start.set || w.order.compare(at, w.start.position) > 0) {
			entries = append(entries, positionedEntry{entry{key, item}, at})
		}
		return w.spend(1)
	})
	w.emit(w.out, entries)
}

// sortText describes the sort method for the plan; empty without a sort term.
func (x *execution) sortText() string {
	switch {
	case len(x.order) == 0:
		return ""
	case !x.walksIndex():
		return "candidates: " + atMost(x.candidateCount())
	case x.options.Limit > 0:
		return "along " + x.order[0].name + ", up to " + countOf(x.options.Limit, "object")
	}
	return "along " + x.order[0].name
}

func atMost(objects int) string { return "at most " + countOf(objects, "object") }
