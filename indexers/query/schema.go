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

// schema describes the indexes of a source by name.
type schema map[string]*compiledIndex

// compiledIndex is an index with its own functions and their counters.
type compiledIndex struct {
	*indexers.Index
	functions *indexers.Functions
	fields    []string // that the index reads
}

func newSchema(indexes []*indexers.Index) schema {
	s := schema{}
	for _, index := range indexes {
		s[index.Name] = &compiledIndex{index, indexers.CompileIndexes(index), index.Fields()}
	}
	return s
}

// openedIndex is an index of a snapshot with its declaration.
type openedIndex struct {
	Index
	name string
	now  time.Time
	// declared and functions are nil for indexes without a declaration; their keys are text.
	declared  *indexers.Index
	functions *indexers.Functions
}

func (s schema) open(snapshot Snapshot, name string) (openedIndex, error) {
	index, ok := snapshot.Index(name)
	if !ok {
		return openedIndex{}, &UnknownIndexError{Name: name,
			Known: slices.Sorted(slices.Values(snapshot.IndexNames()))}
	}
	opened := openedIndex{Index: index, name: name}
	if declared := s[name]; declared != nil {
		opened.declared, opened.functions = declared.Index, declared.functions
		for _, field := range declared.fields {
			if snapshot.Drops(field) {
				return openedIndex{}, &DroppedFieldError{Field: field, Index: name}
			}
		}
	}
	return opened, nil
}

func (o openedIndex) isSorted() bool { return o.declared != nil && o.declared.Sorted }

func (o openedIndex) isComposite() bool { return o.declared != nil && o.declared.Composite() }

// isSingleValued reports whether an object has at most one key.
func (o openedIndex) isSingleValued() bool { return o.declared != nil && o.declared.Single() }

// eachKey calls yield for each key with the number of its objects, in any order, until it returns false.
func (o openedIndex) eachKey(yield func(key string, count int) bool) {
	if x, ok := o.Index.(interface {
		Each(yield func(key string, count int) bool)
	}); ok {
		x.Each(yield)
		return
	}
	o.Keys("", "", false, yield)
}

type storedKeyIndex interface {
	// AppendValues appends the keys of an object and reports whether they are known.
	AppendValues(to []string, object string) ([]string, bool)
}

// keysOf appends the keys of an object, stored or computed.
func (o openedIndex) keysOf(dst []string, object string, item any) []string {
	if x, ok := o.Index.(storedKeyIndex); ok {
		if keys, isStored := x.AppendValues(dst, object); isStored {
			return keys
		}
	}
	return append(dst, o.functions.KeysOfStored(item)[0]...)
}

// keyCost is the cost of getting and sorting the keys of an object, relative to reading one object from an
// index. Stored keys are cheaper than computed ones.
func (o openedIndex) keyCost() int {
	if _, ok := o.Index.(storedKeyIndex); ok {
		return 4
	}
	return 16
}

// parts returns the canonical parts of an operand. If endsInPrefix is set, the last part is a text prefix.
func (o openedIndex) parts(v value, endsInPrefix bool) []string {
	parts := v.parts
	if v.isJoinedText && o.isComposite() {
		parts = indexers.SplitValue(v.parts[0])
	}
	if o.declared == nil || len(parts) > len(o.declared.Types()) {
		return parts
	}
	out := make([]string, len(parts))
	for n, text := range parts {
		out[n] = o.declared.Operand(n, text, endsInPrefix && n == len(o.declared.Types())-1)
		if absolute, ok := parseRelativeTime(text, o.now); ok {
			switch o.declared.Types()[n] {
			case sortkey.Time.String():
				out[n] = absolute.UTC().Format(time.RFC3339Nano)
			case sortkey.Date.String():
				out[n] = absolute.UTC().Format(time.DateOnly)
			}
		}
	}
	return out
}

func (o openedIndex) key(v value) (string, error) {
	if o.declared == nil {
		return indexers.Value(v.parts...), nil
	}
	return o.declared.Key(o.parts(v, false)...)
}

// suggestPrefix adds the query for the first parts to an error about an incomplete composite value.
func (o openedIndex) suggestPrefix(v value, err error) error {
	if parts := o.parts(v, false); v.isJoinedText && o.isComposite() && len(parts) < len(o.declared.Types()) {
		return fmt.Errorf("%w; %s^=%s finds all with these first parts", err, o.name, v)
	}
	return err
}

// suggestRelativeTime adds the syntax of relative times to an error about a time.
func (o openedIndex) suggestRelativeTime(err error) error {
	var operand *indexers.OperandError
	if o.declared == nil || !errors.As(err, &operand) || operand.Part < 0 {
		return err
	}
	if typ := o.declared.Types()[operand.Part]; typ == sortkey.Time.String() || typ == sortkey.Date.String() {
		return fmt.Errorf("%w, or relative to now as now-14d or now+1h30m", err)
	}
	return err
}

// parseRelativeTime parses "now", "now-14d" or "now+1h30m".
func parseRelativeTime(text string, now time.Time) (time.Time, bool) {
	rest, ok := strings.CutPrefix(text, "now")
	if !ok || rest == "" {
		return now, ok
	}
	if rest[0] != '-' && rest[0] != '+' {
		return now, false
	}
	offset, ok := sortkey.ParseDuration(rest[1:])
	if rest[0] == '-' {
		offset = -offset
	}
	return now.Add(offset), ok
}

// displayKey formats a key as a value in the text syntax.
func (o openedIndex) displayKey(key string) string {
	if o.declared == nil {
		return key
	}
	return indexers.Value(o.declared.Parts(key)...)
}

// span is a range of keys, low <= key < high. An empty high is open, unless the span is empty.
type span struct {
	low, high string
	isEmpty   bool
}

func (s span) contains(key string) bool {
	return !s.isEmpty && key >= s.low && (s.high == "" || key < s.high)
}

// intersect returns the keys in both spans.
func (s span) intersect(other span) span {
	common := span{low: max(s.low, other.low), high: s.high, isEmpty: s.isEmpty || other.isEmpty}
	if common.high == "" || other.high != "" && other.high < common.high {
		common.high = other.high
	}
	if common.high != "" && common.low >= common.high {
		common.isEmpty = true
	}
	return common
}

// prefixSpan returns the span of the keys that begin with the parts of v.
func (o openedIndex) prefixSpan(v value) (span, error) {
	if !o.isSorted() && !o.isComposite() {
		return span{}, &UnsortedError{o.name, "a prefix"}
	}
	prefix, err := o.declared.Prefix(o.parts(v, true)...)
	return span{low: prefix, high: sortkey.PrefixEnd(prefix)}, err
}

// valueSpan returns the span of the keys with a value or with the first parts of one. The error contains
// purpose.
func (o openedIndex) valueSpan(v value, purpose string) (span, error) {
	if !o.isSorted() {
		return span{}, &UnsortedError{o.name, purpose}
	}
	parts := o.parts(v, false)
	if len(parts) > 0 && len(parts) < len(o.declared.Types()) {
		prefix, err := o.declared.Prefix(parts...)
		return span{low: prefix, high: sortkey.PrefixEnd(prefix)}, err
	}
	key, err := o.declared.Key(parts...)
	return span{low: key, high: key + "\x00"}, err
}

func (o openedIndex) comparisonSpan(c *comparison) (span, error) {
	switch c.op {
	case opPrefix:
		return o.prefixSpan(c.values[0])
	case opRange:
		return o.rangeSpan(c.values[0], c.values[1])
	case opWithin:
		_, within, err := o.addressSpan(c.values[0].parts[0])
		return within, err
	case opExists:
		return span{}, nil
	}
	s, err := o.valueSpan(c.values[0], "a comparison")
	switch c.op {
	case opLess:
		return span{high: s.low, isEmpty: s.low == ""}, err
	case opAtMost:
		return span{high: s.high}, err
	case opGreater:
		return span{low: s.high}, err
	default:
		return span{low: s.low}, err
	}
}

func (o openedIndex) rangeSpan(from, to value) (s span, err error) {
	if !o.isSorted() {
		return s, &UnsortedError{o.name, "a range"}
	}
	for _, bound := range []struct {
		v   value
		set *string
	}{{from, &s.low}, {to, &s.high}} {
		if len(bound.v.parts) == 1 && bound.v.parts[0] == "" {
			continue
		}
		b, err := o.valueSpan(bound.v, "a range")
		if err != nil {
			return s, err
		}
		*bound.set = b.low
	}
	return s, nil
}
