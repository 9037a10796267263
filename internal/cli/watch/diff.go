package watch

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/internal/cli/output"
)

// change is a field that differs: Old is missing for one that is new, New for one that is gone.
type change struct {
	path           string
	old, new       any
	hasOld, hasNew bool
}

// noise are fields that change with every write and say nothing.
var noise = []string{".metadata.resourceVersion", ".metadata.managedFields"}

// compare lists what differs between two objects, in the order of the paths.
func compare(before, after map[string]any) []change {
	var d differ
	d.maps("", before, after)
	return d.changes
}

type differ struct{ changes []change }

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
	if !equal(before, after) {
		d.changes = append(d.changes, change{path: path, old: before, new: after, hasOld: true, hasNew: true})
	}
}

func (d *differ) maps(path string, before, after map[string]any) {
	keys := map[string]bool{}
	for _, m := range []map[string]any{before, after} {
		for key := range m {
			keys[key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		below := path + step(key)
		if slices.Contains(noise, below) {
			continue
		}
		b, hadIt := before[key]
		a, hasIt := after[key]
		d.pair(below, b, hadIt, a, hasIt)
	}
}

func (d *differ) pair(path string, before any, hadIt bool, after any, hasIt bool) {
	switch {
	case hadIt && hasIt:
		d.values(path, before, after)
	case hadIt:
		d.changes = append(d.changes, change{path: path, old: before, hasOld: true})
	default:
		d.changes = append(d.changes, change{path: path, new: after, hasNew: true})
	}
}

// lists compares elements that have the same name or type, as in most lists of objects, or else the same place.
func (d *differ) lists(path string, before, after []any) {
	for _, key := range []string{"name", "type"} {
		b, inBefore := byKey(before, key)
		a, inAfter := byKey(after, key)
		if !inBefore || !inAfter {
			continue
		}
		names := map[string]bool{}
		for _, m := range []map[string]any{b, a} {
			for name := range m {
				names[name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			old, hadIt := b[name]
			now, hasIt := a[name]
			d.pair(fmt.Sprintf("%s[%s=%s]", path, key, name), old, hadIt, now, hasIt)
		}
		return
	}
	for i := range max(len(before), len(after)) {
		var old, now any
		if i < len(before) {
			old = before[i]
		}
		if i < len(after) {
			now = after[i]
		}
		d.pair(fmt.Sprintf("%s[%d]", path, i), old, i < len(before), now, i < len(after))
	}
}

// byKey gives the elements of a list by a key that each has, with a value of its own.
func byKey(list []any, key string) (map[string]any, bool) {
	elements := make(map[string]any, len(list))
	for _, element := range list {
		m, ok := element.(map[string]any)
		if !ok {
			return nil, false
		}
		name, ok := m[key].(string)
		if _, taken := elements[name]; !ok || taken {
			return nil, false
		}
		elements[name] = element
	}
	return elements, true
}

// equal compares values that are not both maps or both lists.
func equal(a, b any) bool {
	switch a.(type) {
	case map[string]any, []any:
		return false
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}

// step is how a path goes on with a key.
func step(key string) string {
	if strings.ContainsAny(key, ".[]'\" /") || key == "" {
		return "['" + strings.ReplaceAll(key, "'", `\'`) + "']"
	}
	return "." + key
}

// The colours of changes.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// line formats a change for a person.
func (c change) line(color bool) string {
	path := output.Printable(c.path)
	text, paint := "", ""
	switch {
	case c.hasOld && c.hasNew:
		text, paint = fmt.Sprintf("  ~ %s: %s → %s", path, brief(c.old), brief(c.new)), yellow
	case c.hasNew:
		text, paint = fmt.Sprintf("  + %s: %s", path, brief(c.new)), green
	default:
		text, paint = fmt.Sprintf("  - %s: %s", path, brief(c.old)), red
	}
	if !color {
		return text
	}
	return paint + text + plain
}

// maxBrief is how many characters of a value are shown.
const maxBrief = 100

// brief gives a value as JSON on one line, cut where it is long. JSON escapes what a terminal would act on, but for
// a few characters.
func brief(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "?"
	}
	text := []rune(output.Printable(strings.TrimSuffix(b.String(), "\n")))
	if len(text) > maxBrief {
		return string(text[:maxBrief]) + "…"
	}
	return string(text)
}
