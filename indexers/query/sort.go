package query

import (
	"slices"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/naming"
)

type positionedEntry struct {
	entry
	position
}

// sortInto adds the objects to out in order, until it is full.
func (e *execution) sortInto(out *outputPage) {
	if !e.walksIndex() {
		e.sortCandidates(out)
		return
	}
	walk := &indexWalk{execution: e, out: out, term: e.order[0], budget: e.sortWork()}
	walk.run()
	if walk.exhausted && e.err == nil { // too few objects along the index match
		if len(out.entries) > 0 {
			e.start = cursor{position: out.lastPosition, isSet: true}
		}
		e.sortCandidates(out)
	}
}

// sortWork is the cost of sorting the candidates, in index lookups.
func (e *execution) sortWork() int {
	if len(e.order) == 0 || e.order[0].index == nil {
		return 0
	}
	return e.candidateCount() * e.order[0].index.keyCost()
}

// walksIndex reports whether walking an index in its order, up to the limit, is cheaper than sorting all
// candidates. The cost of walking is an estimate, because the matching objects can be anywhere in the order.
func (e *execution) walksIndex() bool {
	if len(e.order) != 1 || e.order[0].index == nil {
		return false
	}
	objects, candidates := e.snapshot.Len(), e.candidateCount()
	steps := objects + candidates
	if limit := e.options.Limit; limit > 0 && candidates > 0 {
		steps = min(steps, (limit+1)*objects/candidates)
	}
	return e.sortWork() > steps
}

func (e *execution) sortCandidates(out *outputPage) {
	positionOf := e.positionFunc()
	var entries []positionedEntry
	e.candidates(func(key string, item any) bool {
		position := positionOf(key, item)
		if !e.start.isSet || e.order.compare(position, e.start.position) > 0 {
			entries = append(entries, positionedEntry{entry{key, item}, position})
		}
		return true
	})
	e.emitSorted(out, entries)
}

// emitSorted sorts entries and adds them to out until it is full.
func (e *execution) emitSorted(out *outputPage, entries []positionedEntry) bool {
	slices.SortFunc(entries, func(a, b positionedEntry) int {
		if !e.spend(1) {
			return 0 // cancelled: the order does not matter
		}
		return e.order.compare(a.position, b.position)
	})
	for _, e := range entries {
		if !out.add(e.entry, e.position) {
			return false
		}
	}
	return e.err == nil
}

// positionFunc returns a function from an object to its position. For many candidates it reads the index
// once instead of computing the keys of each object.
func (e *execution) positionFunc() func(key string, item any) position {
	valueFuncs, work := make([]func(string, any) sortValue, len(e.order)), len(e.order)
	for i, t := range e.order {
		if t.readsBody {
			work += bodyWork
		}
		valueFuncs[i] = t.valueOf
		if t.index == nil {
			continue
		}
		if keyCost := t.index.keyCost(); e.candidateCount()*keyCost <= e.snapshot.Len() {
			work += keyCost
		} else {
			first := e.firstKeys(t)
			valueFuncs[i] = func(key string, _ any) sortValue {
				v, ok := first[key]
				return sortValue{v, ok}
			}
		}
	}
	var pool []sortValue // allocated in batches
	return func(key string, item any) position {
		if len(pool) < len(valueFuncs) {
			pool = make([]sortValue, min(64, max(e.candidateCount(), 1))*len(valueFuncs))
		}
		values := pool[:len(valueFuncs):len(valueFuncs)]
		pool = pool[len(valueFuncs):]
		for i := range valueFuncs {
			values[i] = valueFuncs[i](key, item)
		}
		e.spend(work)
		return position{values, key}
	}
}

func (e *execution) firstKeys(t sortTerm) map[string]string {
	firstKeys := map[string]string{}
	t.index.Keys("", "", t.descending, func(value string, _ int) bool {
		if value == indexers.Null && !t.index.isComposite() {
			return e.spend(1)
		}
		t.index.Objects(value, func(key string, _ any) bool {
			if _, duplicate := firstKeys[key]; !duplicate {
				firstKeys[key] = value
			}
			return e.spend(1)
		})
		return !e.isCancelled()
	})
	return firstKeys
}

// indexWalk walks the index of the only sort term.
type indexWalk struct {
	*execution
	out  *outputPage
	term sortTerm
	// budget is the number of objects that a walk with a limit tests before it stops and sets exhausted.
	budget      int
	exhausted   bool
	seenObjects map[string]struct{} // objects seen so far, if one can have several values
}

func (w *indexWalk) run() {
	if !w.term.index.isSingleValued() {
		w.seenObjects = map[string]struct{}{}
	}
	if w.addWithValues() && w.err == nil {
		w.addWithoutValue()
	}
}

// addWithValues adds the objects that have a value. It returns false if out is full.
func (w *indexWalk) addWithValues() bool {
	low, high := "", ""
	if w.start.isSet {
		lastValue := w.start.values[0]
		if !lastValue.present {
			return true
		}
		switch {
		case w.seenObjects != nil: // objects of earlier pages have to be seen again
		case w.term.descending:
			high = lastValue.key + "\x00"
		default:
			low = lastValue.key
		}
	}
	wantsMore := true
	w.term.index.Keys(low, high, w.term.descending, func(value string, _ int) bool {
		if value == indexers.Null && !w.term.index.isComposite() {
			return true
		}
		wantsMore = w.addWithValue(value)
		return wantsMore
	})
	return wantsMore
}

func (w *indexWalk) addWithValue(indexKey string) bool {
	var entries []positionedEntry
	w.term.index.Objects(indexKey, func(key string, item any) bool {
		if !w.countTested() || w.isOverBudget() {
			return false
		}
		if w.seenObjects != nil {
			if _, duplicate := w.seenObjects[key]; duplicate {
				return true
			}
			w.seenObjects[key] = struct{}{}
		}
		entryPosition := position{[]sortValue{{indexKey, true}}, key}
		if w.start.isSet && w.order.compare(entryPosition, w.start.position) <= 0 {
			return true // on an earlier page
		}
		if w.accepts(key, item) {
			entries = append(entries, positionedEntry{entry{key, item}, entryPosition})
		}
		return !w.isCancelled()
	})
	return !w.exhausted && w.emitSorted(w.out, entries)
}

// isOverBudget reports whether the walk tested too many objects for the number that it found.
func (w *indexWalk) isOverBudget() bool {
	w.exhausted = w.hasCandidateList && w.options.Limit > 0 && w.examined > w.budget
	return w.exhausted
}

func (w *indexWalk) accepts(key string, item any) bool {
	switch parts := w.candidateList.parts; {
	case !w.hasCandidateList:
	case len(parts) == 1:
		if !parts[0].matches(key, item) {
			return false
		}
	default: // the candidate list is not a single condition
		return w.condition.matches(key, item)
	}
	return allMatch(w.cheap, key, item)
}

func (w *indexWalk) addWithoutValue() {
	firstKeys := w.firstKeys(w.term)
	if len(firstKeys) == w.snapshot.Len() {
		return
	}
	var entries []positionedEntry
	w.candidates(func(key string, item any) bool {
		entryPosition := position{[]sortValue{{}}, key}
		isAfterStart := !w.start.isSet || w.order.compare(entryPosition, w.start.position) > 0
		if _, hasValue := firstKeys[key]; !hasValue && isAfterStart {
			entries = append(entries, positionedEntry{entry{key, item}, entryPosition})
		}
		return w.spend(1)
	})
	w.emitSorted(w.out, entries)
}

// sortText describes the sort method for the plan; empty without a sort term.
func (e *execution) sortText() string {
	switch {
	case len(e.order) == 0:
		return ""
	case !e.walksIndex():
		return "candidates: at most " + naming.FormatCount(e.candidateCount(), "object")
	case e.options.Limit > 0:
		return "along " + e.order[0].name + ", up to " + naming.FormatCount(e.options.Limit, "object")
	}
	return "along " + e.order[0].name
}
