package print

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/redact"
)

// Change is a changed field. HasOld is false for an added field, HasNew for a removed one.
type Change struct {
	Path           string
	Old, New       any
	HasOld, HasNew bool
}

// redactor replaces the values of Secrets by marks. Within a process, equal values have equal marks.
var redactor = redact.New(false)

// Compare returns the fields that differ between two states of an object, ordered by path. The values of
// Secrets are redacted.
func Compare(resource schema.GroupResource, before, after map[string]any) []Change {
	before, after = redactor.Pair(resource, before, after)
	var d differ
	d.maps("", before, after)
	return d.changes
}

// ignoredFields change with every write or over time, or repeat other fields.
var ignoredFields = []string{
	pathStep(RowField), ".metadata.resourceVersion", ".metadata.generation",
	".metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']",
}

type differ struct{ changes []Change }

func (d *differ) values(path string, before, after any) {
	switch b := before.(type) {
	case map[string]any:
		if a, ok := after.(map[string]any); ok {
			d.maps(path, b, a)
			return
		}
	case []any:
		if a, ok := after.([]any); ok {
			d.lists(path, b, a)
			return
		}
	}
	if !reflect.DeepEqual(before, after) {
		d.changes = append(d.changes, Change{Path: path, Old: before, New: after, HasOld: true, HasNew: true})
	}
}

func (d *differ) maps(path string, before, after map[string]any) {
	for _, key := range union(before, after) {
		below := path + pathStep(key)
		if slices.Contains(ignoredFields, below) {
			continue
		}
		old, hadIt := before[key]
		now, hasIt := after[key]
		d.pair(below, old, hadIt, now, hasIt)
	}
}

// union returns the sorted keys of two maps.
func union(a, b map[string]any) []string {
	keys := maps.Clone(a)
	if keys == nil {
		keys = map[string]any{}
	}
	maps.Copy(keys, b)
	return slices.Sorted(maps.Keys(keys))
}

func (d *differ) pair(path string, before any, hadIt bool, after any, hasIt bool) {
	switch {
	case hadIt && hasIt:
		d.values(path, before, after)
	case hadIt:
		d.changes = append(d.changes, Change{Path: path, Old: before, HasOld: true})
	default:
		d.changes = append(d.changes, Change{Path: path, New: after, HasNew: true})
	}
}

// listNames are the fields that identify list elements, in Kubernetes' types and in most others.
var listNames = []string{"name", "type", "key", "uid"}

// lists compares elements by name if all elements have a unique name, and otherwise by position.
func (d *differ) lists(path string, before, after []any) {
	for _, name := range listNames {
		b, inBefore := byName(before, name)
		a, inAfter := byName(after, name)
		if !inBefore || !inAfter {
			continue
		}
		for _, key := range union(b, a) {
			old, hadIt := b[key]
			now, hasIt := a[key]
			d.pair(fmt.Sprintf("%s[%s=%s]", path, name, key), old, hadIt, now, hasIt)
		}
		return
	}
	for _, gap := range gaps(before, after) {
		old, now := before[gap.before:gap.beforeEnd], after[gap.after:gap.afterEnd]
		for i := range max(len(old), len(now)) {
			// The index of a removed element is its old index.
			index := gap.after + i
			if i >= len(now) {
				index = gap.before + i
			}
			d.pair(fmt.Sprintf("%s[%d]", path, index), elementAt(old, i), i < len(old),
				elementAt(now, i), i < len(now))
		}
	}
}

func elementAt(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// byName indexes the elements of a list by a field. It returns false unless every element has a unique value.
func byName(list []any, name string) (map[string]any, bool) {
	elements := make(map[string]any, len(list))
	for _, element := range list {
		m, ok := element.(map[string]any)
		if !ok {
			return nil, false
		}
		key, ok := m[name].(string)
		if _, taken := elements[key]; !ok || taken {
			return nil, false
		}
		elements[key] = element
	}
	return elements, true
}

// pathStep returns the text that appends a key to a path.
func pathStep(key string) string {
	if strings.ContainsAny(key, ".[]'\" /") || key == "" {
		return "['" + strings.ReplaceAll(key, "'", `\'`) + "']"
	}
	return "." + key
}

// gap is a range of two lists in which they differ.
type gap struct{ before, beforeEnd, after, afterEnd int }

// maxTable bounds the effort for long lists. Above it, everything between the first and the last difference
// is one gap.
const maxTable = 1 << 18

// gaps returns the ranges outside the longest common subsequence of two lists.
func gaps[T any](before, after []T) []gap {
	same := func(i, j int) bool { return reflect.DeepEqual(before[i], after[j]) }
	begin := 0
	for begin < min(len(before), len(after)) && same(begin, begin) {
		begin++
	}
	m, n := len(before), len(after)
	for m > begin && n > begin && same(m-1, n-1) {
		m, n = m-1, n-1
	}
	if m == begin && n == begin {
		return nil
	}
	if (m-begin)*(n-begin) > maxTable {
		return []gap{{begin, m, begin, n}}
	}
	// common[i][j] is the length of the longest common subsequence of before[i:] and after[j:].
	common := make([][]int, m-begin+1)
	for i := range common {
		common[i] = make([]int, n-begin+1)
	}
	for i := m - begin - 1; i >= 0; i-- {
		for j := n - begin - 1; j >= 0; j-- {
			if same(begin+i, begin+j) {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var all []gap
	open := gap{begin, begin, begin, begin}
	for i, j := begin, begin; ; {
		matched := i < m && j < n && same(i, j)
		if matched || i == m && j == n {
			if open.beforeEnd, open.afterEnd = i, j; open.before < i || open.after < j {
				all = append(all, open)
			}
			if !matched {
				return all
			}
			i, j = i+1, j+1
			open = gap{i, i, j, j}
			continue
		}
		if j == n || i < m && common[i-begin+1][j-begin] >= common[i-begin][j-begin+1] {
			i++
		} else {
			j++
		}
	}
}
