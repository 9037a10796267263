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

// Change is a field that differs: Old is missing for one that is new, New for one that is gone.
type Change struct {
	Path           string
	Old, New       any
	HasOld, HasNew bool
}

// redactor marks the values of Secrets. The marks of a process show which values differ, and not the values.
var redactor = redact.New(false)

// Compare lists the differing fields of two states of an object of a type, in the order of the paths. The
// values of Secrets are redacted.
func Compare(of schema.GroupResource, before, after map[string]any) []Change {
	before, after = redactor.Pair(of, before, after)
	var d differ
	d.maps("", before, after)
	return d.changes
}

// ignoredFields are fields that change with every write, or with time, and say nothing; or what other fields
// say as well.
var ignoredFields = []string{
	pathStep(PrintedField), ".metadata.resourceVersion", ".metadata.generation",
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

// union are the keys of two maps, in order.
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

// listNames are the fields by which elements of lists are known, in Kubernetes' own types and in most others.
var listNames = []string{"name", "type", "key", "uid"}

// lists compares elements that have the same name, as in most lists of objects, or else those in between what
// both lists have.
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
			// What is gone has the place that it had, all else the one that it has.
			place := gap.after + i
			if i >= len(now) {
				place = gap.before + i
			}
			d.pair(fmt.Sprintf("%s[%d]", path, place), elementAt(old, i), i < len(old),
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

// byName gives the elements of a list by a field that each has, with a value of its own.
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

// pathStep is how a path goes on with a key.
func pathStep(key string) string {
	if strings.ContainsAny(key, ".[]'\" /") || key == "" {
		return "['" + strings.ReplaceAll(key, "'", `\'`) + "']"
	}
	return "." + key
}

// gap is where two lists differ: elements of one that stand for elements of the other.
type gap struct{ before, beforeEnd, after, afterEnd int }

// maxTable bounds the effort for long lists: past it, what is between the first and the last difference is
// one gap.
const maxTable = 1 << 18

// gaps returns where two lists differ, around as many elements as both have in the same order.
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
	// common[i][j] is how many elements before[i:] and after[j:] have in common.
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
