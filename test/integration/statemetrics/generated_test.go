package statemetrics

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-state-metrics/v2/pkg/customresourcestate"
	"sigs.k8s.io/yaml"
)

// values are values that kube-state-metrics converts, refuses or prints. Texts without counterpart are in
// docs/metrics.md: NaN and infinite numbers, and a unit without number, which kube-state-metrics reads as 0.
var values = []any{
	"True", "False", "Unknown", "unknown", "yes", "No", "", "Ready", "Active", "85%", "-5%", "1.5%", "1_000", "0x1p-2",
	"1Gi", "250m", "1e3", "+5", ".5", "5.", "-1Ki", " 5", "12345678901234567890", "2026-01-31T10:00:00Z", "2026-01-31", "90s",
	int64(3), int64(0), int64(-7), 2.5, 1e21, 1234567.5, 1e-7, true, false, nil,
	[]any{"a", "b"}, []any{}, map[string]any{"a": "b", "n": nil}, map[string]any{}, []any{int64(1), map[string]any{"x": 1.5}},
}

// objectGenerator makes objects with values at the paths of a config.
type objectGenerator struct{ *rand.Rand }

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

func (g objectGenerator) value() any { return runtimeCopy(values[g.IntN(len(values))]) }

// isList reports whether a path of the resource looks up an element of the list at a path.
func isList(r customresourcestate.Resource, path []string) bool {
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
	for {
		if v := g.value(); v != nil {
			return v
		}
	}
}

// scalar returns a value that is no list and no map.
func (g objectGenerator) scalar() any {
	for {
		switch v := g.value().(type) {
		case []any, map[string]any:
		default:
			return v
		}
	}
}

func runtimeCopy(v any) any {
	return (&unstructured.Unstructured{Object: map[string]any{"v": v}}).DeepCopy().Object["v"]
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
func (g objectGenerator) object(r customresourcestate.Resource, n int) *unstructured.Unstructured {
	gvk := r.GroupVersionKind
	version, kind := strings.Trim(gvk.Version, "*"), strings.Trim(gvk.Kind, "*")
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
	u := &unstructured.Unstructured{Object: object}
	if version == "" {
		version = "v1"
	}
	if kind == "" {
		kind = "Any"
	}
	u.SetAPIVersion(gvk.Group + "/" + version)
	u.SetKind(kind)
	u.SetName(fmt.Sprintf("o%d", n))
	u.SetNamespace("ns")
	u.SetUID("uid")
	return u
}

// TestEqualShapes compares the series of configs in the forms that projects publish, for generated objects.
func TestEqualShapes(t *testing.T) {
	program := buildCrdcache(t)
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			published, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			resources := publishedResources(t, published)
			config, err := yaml.Marshal(customresourcestate.Metrics{
				Spec: customresourcestate.MetricsSpec{Resources: resources}})
			if err != nil {
				t.Fatal(err)
			}
			converted := convert(t, program, string(published))
			total, infos := 0, infoNames(resources)
			for seed := range uint64(60) {
				g := objectGenerator{rand.New(rand.NewPCG(seed, 0))}
				var objects []*unstructured.Unstructured
				for _, r := range publishedResources(t, published) {
					objects = append(objects, g.object(r, int(seed)))
				}
				want := kubeStateMetricsSeries(t, string(config), objects)
				total += len(want)
				for series := range want {
					if infos[strings.Fields(series)[0]] { // of equal elements, Prometheus takes the first
						want[series] = 1
					}
				}
				got := crdcacheSeries(t, converted, objects)
				if diff := gocmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
					text, _ := yaml.Marshal(objects)
					t.Fatalf("seed %d: series (-kube-state-metrics +crdcache):\n%s\n%s", seed, diff, text)
				}
			}
			t.Logf("%d series", total)
			if total < 60 {
				t.Error("too few series")
			}
		})
	}
}

func infoNames(resources []customresourcestate.Resource) map[string]bool {
	names := map[string]bool{}
	for _, r := range resources {
		for _, m := range r.Metrics {
			if m.Each.Info != nil {
				names[r.GetMetricNamePrefix()+"_"+m.Name] = true
			}
		}
	}
	return names
}

// publishedResources returns the resources of a published file.
func publishedResources(t *testing.T, text []byte) (out []customresourcestate.Resource) {
	t.Helper()
	var find func(v any, depth int)
	find = func(v any, depth int) {
		switch v := v.(type) {
		case string:
			var inner any
			if strings.Contains(v, "groupVersionKind") && yaml.Unmarshal([]byte(v), &inner) == nil {
				find(inner, depth+1)
			}
		case []any:
			for _, e := range v {
				find(e, depth)
			}
		case map[string]any:
			if spec, ok := v["spec"].(map[string]any); ok && spec["resources"] != nil {
				var config customresourcestate.Metrics
				text, _ := yaml.Marshal(v)
				if err := yaml.Unmarshal(text, &config); err != nil {
					t.Fatal(err)
				}
				out = append(out, config.Spec.Resources...)
				return
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				find(v[key], depth)
			}
		}
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var parsed any
		if err := yaml.Unmarshal([]byte(document), &parsed); err != nil {
			t.Fatal(err)
		}
		find(parsed, 0)
	}
	if len(out) == 0 {
		t.Fatal("no resources")
	}
	return out
}
