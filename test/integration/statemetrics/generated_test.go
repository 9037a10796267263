package statemetrics

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// contents are values that kube-state-metrics converts, refuses or prints. Texts without counterpart are in
// docs/metrics.md: NaN and infinite numbers, and a unit without number, which kube-state-metrics reads as 0.
var contents = []any{
	"True", "False", "Unknown", "unknown", "yes", "No", "", "Ready", "Active", "85%", "-5%", "1.5%", "1_000", "0x1p-2",
	"1Gi", "250m", "1e3", "+5", ".5", "5.", "-1Ki", " 5", "12345678901234567890", "2026-01-31T10:00:00Z", "2026-01-31", "90s",
	int64(3), int64(0), int64(-7), 2.5, 1e21, 1234567.5, 1e-7, true, false, nil,
	[]any{"a", "b"}, []any{}, map[string]any{"a": "b", "n": nil}, map[string]any{}, []any{int64(1), map[string]any{"x": 1.5}},
}

// objectGenerator makes objects with values at the paths of a config.
type objectGenerator struct{ *rand.Rand }

func newGenerator(round uint64, n int) objectGenerator {
	return objectGenerator{rand.New(rand.NewPCG(round, uint64(n)))}
}

// put stores a value at a path below a node of any kind, and returns the node.
func (g objectGenerator) put(node any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	step, rest := path[0], path[1:]
	if lookup, ok := strings.CutPrefix(step, "["); ok {
		key, wanted, _ := strings.Cut(strings.TrimSuffix(lookup, "]"), "=")
		list, _ := node.([]any)
		for i, e := range list {
			if m, ok := e.(map[string]any); ok && m[key] == wanted {
				list[i] = g.put(m, rest, value)
				return list
			}
		}
		return append(list, g.put(map[string]any{key: wanted}, rest, value))
	}
	if index, err := strconv.Atoi(step); err == nil {
		list, _ := node.([]any)
		for len(list) < max(index+1, 1) {
			list = append(list, nil)
		}
		if index < 0 {
			index = len(list) - 1
		}
		list[index] = g.put(list[index], rest, value)
		return list
	}
	m, ok := node.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	name, wanted, isEquality := strings.Cut(step, "=")
	if isEquality && g.IntN(2) == 0 {
		value = wanted
	}
	m[name] = g.put(m[name], rest, value)
	return m
}

func (g objectGenerator) value() any {
	return runtime.DeepCopyJSONValue(contents[g.IntN(len(contents))])
}

// isList reports whether a path of the resource looks up an element of the list at a path.
func isList(r resource, path []string) bool {
	prefix := strings.Join(path, "\n") + "\n["
	for _, m := range r.Metrics {
		labels := slices.Collect(maps.Values(m.LabelsFromPath))
		if m.Each.Gauge != nil {
			labels = append(labels, m.Each.Gauge.Path)
		}
		if m.Each.Info != nil {
			labels = append(labels, m.Each.Info.Path)
		}
		isBelow := func(p []string) bool { return strings.HasPrefix(strings.Join(p, "\n"), prefix) }
		if slices.ContainsFunc(labels, isBelow) {
			return true
		}
	}
	return false
}

// set returns a value that is not null.
func (g objectGenerator) set() any {
	if v := g.value(); v != nil {
		return v
	}
	return g.set()
}

// scalar returns a value that is no list and no map.
func (g objectGenerator) scalar() any {
	switch v := g.value().(type) {
	case []any, map[string]any:
		return g.scalar()
	default:
		return v
	}
}

// element returns a value of the metric's path: a map with the paths below it, or any value.
func (g objectGenerator) element(below [][]string) any {
	if len(below) == 0 || g.IntN(8) == 0 {
		return g.value()
	}
	var node any = map[string]any{}
	for _, path := range below {
		if len(path) > 0 && g.IntN(5) > 0 {
			node = g.put(node, path, g.value())
		}
	}
	return node
}

// object returns an object of the resource.
func (g objectGenerator) object(r resource, n int) *unstructured.Unstructured {
	object := map[string]any{}
	put := func(path []string, value any) {
		if len(path) > 0 && path[0] == "metadata" {
			value = "text"
			if path[len(path)-1] == "creationTimestamp" {
				value = "2026-01-31T10:00:00Z"
			}
		}
		if len(path) > 0 && (path[0] != "metadata" || len(path) > 2) {
			object = g.put(object, path, value).(map[string]any)
		}
	}
	putAll := func(labels map[string][]string) {
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			path := labels[name]
			if g.IntN(5) > 0 {
				put(path, g.set())
			}
		}
	}
	putAll(r.LabelsFromPath)
	for _, m := range r.Metrics {
		putAll(m.LabelsFromPath)
		var path, valueFrom []string
		var labels map[string][]string
		labelFromKey, nilIsZero := "", false
		switch e := m.Each; {
		case e.Gauge != nil:
			path, valueFrom, labels = e.Gauge.Path, e.Gauge.ValueFrom, e.Gauge.LabelsFromPath
			labelFromKey, nilIsZero = e.Gauge.LabelFromKey, e.Gauge.NilIsZero
		case e.StateSet != nil:
			path, valueFrom, labels = e.StateSet.Path, e.StateSet.ValueFrom, e.StateSet.LabelsFromPath
		case e.Info != nil:
			path, labels, labelFromKey = e.Info.Path, e.Info.LabelsFromPath, e.Info.LabelFromKey
		}
		below := slices.Collect(maps.Values(labels))
		slices.SortFunc(below, slices.Compare)
		if len(valueFrom) > 0 {
			below = append(below, valueFrom)
		}
		// the whole element
		isWhole := slices.ContainsFunc(below, func(p []string) bool { return len(p) == 0 })
		switch structs := []string{"metadata", "spec", "status"}; {
		case len(path) == 0 || len(path) == 1 && slices.Contains(structs, path[0]): // never a list
			for _, p := range below {
				if full := slices.Concat(path, p); g.IntN(5) > 0 {
					put(full, g.set())
				}
			}
		case labelFromKey != "":
			put(path, map[string]any{"first": g.element(below), "second": g.element(below)})
		case len(below) == 0 && m.Each.Gauge != nil: // elements would have equal labels
			put(path, g.scalar())
		case len(below) == 0:
			put(path, g.value())
		case isWhole && g.IntN(2) == 0:
			put(path, []any{g.set(), g.set()})
		case isWhole:
			put(path, g.scalar())
		case nilIsZero && g.IntN(3) == 0: // in a map, the other fields count as 0
			put(path, nil)
		case !nilIsZero && !isList(r, path) && g.IntN(3) == 0:
			put(path, g.element(below))
		case nilIsZero || isList(r, path) || g.IntN(4) > 0:
			put(path, []any{g.element(below), g.element(below)})
		default:
			put(path, map[string]any{"first": g.element(below), "second": g.element(below)})
		}
	}
	group, version, kind := r.kind()
	u := &unstructured.Unstructured{Object: object}
	u.SetAPIVersion(group + "/" + version)
	u.SetKind(kind)
	u.SetName(fmt.Sprintf("o%d", n))
	return u
}
