package query

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/internal/sortkey"
)

// schema knows what the indexes of a source hold.
type schema map[string]*described

// described is an index with its function, which counts for itself.
type described struct {
	*indexers.Index
	functions *indexers.Functions
}

func newSchema(indexes []*indexers.Index) schema {
	s := schema{}
	for _, index := range indexes {
		s[index.Name] = &described{index, indexers.CompileIndexes(index)}
	}
	return s
}

// access is an index of a snapshot together with what is known of it.
type access struct {
	Index
	name string
	now  time.Time
	// declared is nil for indexes that no config describes: their keys are text. functions are those of
	// declared.
	declared  *indexers.Index
	functions *indexers.Functions
}

// open returns the index of that name.
func (s schema) open(snapshot Snapshot, name string) (access, error) {
	index, ok := snapshot.Index(name)
	if !ok {
		return access{}, &UnknownIndexError{Name: name,
			Known: slices.Sorted(slices.Values(snapshot.IndexNames()))}
	}
	a := access{Index: index, name: name}
	if d := s[name]; d != nil {
		a.declared, a.functions = d.Index, d.functions
	}
	return a, nil
}

func (a access) sorted() bool { return a.declared != nil && a.declared.Sorted }

func (a access) composite() bool { return a.declared != nil && a.declared.Composite() }

// single reports whether an object has at most one key.
func (a access) single() bool { return a.declared != nil && a.declared.Single() }

// each calls yield for each key, with the number of its objects, in any order, until it returns false.
func (a access) each(yield func(key string, count int) bool) {
	if x, ok := a.Index.(interface {
		Each(yield func(key string, count int) bool)
	}); ok {
		x.Each(yield)
		return
	}
	a.Keys("", "", false, yield)
}

// keeper is an index that keeps the keys with their object.
type keeper interface {
	// AppendValues appends the keys of an object and reports whether they are known.
	AppendValues(to []string, object string) ([]string, bool)
}

// keysOf appends the keys of an object: those that the index keeps with it, or else computed of it.
func (a access) keysOf(to []string, object string, item any) []string {
	if x, ok := a.Index.(keeper); ok {
		if keys, known := x.AppendValues(to, object); known {
			return keys
		}
	}
	return append(to, a.functions.StoredKeys(item)[0]...)
}

// rereading is how much dearer it is to get the keys of an object, and to put it into an order, than to take
// one object from an index: less where they are kept than where they have to be computed.
func (a access) rereading() int {
	if _, ok := a.Index.(keeper); ok {
		return 4
	}
	return 16
}

// parts gives the parts of a value that is to be looked up, as the index has them. Of an open value the last
// part is only the beginning of a text.
func (a access) parts(v value, open bool) []string {
	parts := v.parts
	if v.joined && a.composite() {
		parts = indexers.SplitValue(v.parts[0])
	}
	if a.declared == nil || len(parts) > len(a.declared.Types()) {
		return parts
	}
	out := make([]string, len(parts))
	for n, text := range parts {
		out[n] = a.declared.Operand(n, text, open && n == len(a.declared.Types())-1)
		if at, ok := relative(text, a.now); ok {
			switch a.declared.Types()[n] {
			case "time":
				out[n] = at.UTC().Format(time.RFC3339Nano)
			case "date":
				out[n] = at.UTC().Format(time.DateOnly)
			}
		}
	}
	return out
}

// key gives the key of a value.
func (a access) key(v value) (string, error) {
	if a.declared == nil {
		return indexers.Value(v.parts...), nil
	}
	return a.declared.Key(a.parts(v, false)...)
}

// suggestPrefix adds to an error about a value of a query that was text how to ask for the first parts alone.
func (a access) suggestPrefix(v value, err error) error {
	if parts := a.parts(v, false); v.joined && a.composite() && len(parts) < len(a.declared.Types()) {
		return fmt.Errorf("%w; %s^=%s finds all with these first parts", err, a.name, v)
	}
	return err
}

// explain adds to an error about values that are no times how to write those that are relative to now.
func (a access) explain(err error) error {
	var operand *indexers.OperandError
	if a.declared == nil || !errors.As(err, &operand) || operand.Part < 0 {
		return err
	}
	if typ := a.declared.Types()[operand.Part]; typ == "time" || typ == "date" {
		return fmt.Errorf("%w, or relative to now as now-14d or now+1h30m", err)
	}
	return err
}

// relative reads "now", "now-14d" or "now+1h30m".
func relative(text string, now time.Time) (time.Time, bool) {
	rest, ok := strings.CutPrefix(text, "now")
	if !ok || rest == "" {
		return now, ok
	}
	if rest[0] != '-' && rest[0] != '+' {
		return now, false
	}
	by, ok := sortkey.ParseDuration(rest[1:])
	if rest[0] == '-' {
		by = -by
	}
	return now.Add(by), ok
}

// show gives the value of a key, for people and for [Parse].
func (a access) show(key string) string {
	if a.declared == nil {
		return key
	}
	return indexers.Value(a.declared.Parts(key)...)
}

// span is a stretch of keys: from low on and before high. An empty high is no bound, unless there is nothing
// in the stretch.
type span struct {
	low, high string
	nothing   bool
}

// and gives what is in both stretches.
func (s span) and(other span) span {
	both := span{low: max(s.low, other.low), high: s.high, nothing: s.nothing || other.nothing}
	if both.high == "" || other.high != "" && other.high < both.high {
		both.high = other.high
	}
	if both.high != "" && both.low >= both.high {
		both.nothing = true
	}
	return both
}

// prefix gives the stretch of the keys that begin with some parts.
func (a access) prefix(v value) (span, error) {
	if !a.sorted() && !a.composite() {
		return span{}, &UnsortedError{a.name, "a beginning"}
	}
	prefix, err := a.declared.Prefix(a.parts(v, true)...)
	return span{low: prefix, high: sortkey.After(prefix)}, err
}

// bounds gives the stretch of the keys with a value, or whose first parts are those of a value.
func (a access) bounds(v value, what string) (span, error) {
	if !a.sorted() {
		return span{}, &UnsortedError{a.name, what}
	}
	parts := a.parts(v, false)
	if len(parts) > 0 && len(parts) < len(a.declared.Types()) {
		prefix, err := a.declared.Prefix(parts...)
		return span{low: prefix, high: sortkey.After(prefix)}, err
	}
	key, err := a.declared.Key(parts...)
	return span{low: key, high: key + "\x00"}, err
}

// span gives the stretch of keys that a comparison asks for.
func (a access) span(c *comparison) (span, error) {
	switch c.op {
	case opPrefix:
		return a.prefix(c.values[0])
	case opRange:
		return a.between(c.values[0], c.values[1])
	case opExists:
		return span{}, nil
	}
	s, err := a.bounds(c.values[0], "a comparison")
	switch c.op {
	case opLess:
		return span{high: s.low, nothing: s.low == ""}, err
	case opAtMost:
		return span{high: s.high}, err
	case opGreater:
		return span{low: s.high}, err
	default:
		return span{low: s.low}, err
	}
}

func (a access) between(from, to value) (s span, err error) {
	if !a.sorted() {
		return s, &UnsortedError{a.name, "a range"}
	}
	for _, bound := range []struct {
		v   value
		set *string
	}{{from, &s.low}, {to, &s.high}} {
		if len(bound.v.parts) == 1 && bound.v.parts[0] == "" {
			continue
		}
		b, err := a.bounds(bound.v, "a range")
		if err != nil {
			return s, err
		}
		*bound.set = b.low
	}
	return s, nil
}
