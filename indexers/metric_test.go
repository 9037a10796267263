package indexers_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
)

// objectsByKey is the index of a fake cache: the objects of each key.
type objectsByKey map[string][]string

func (k objectsByKey) Keys(_, _ string, _ bool, yield func(key string, count int) bool) {
	for _, key := range slices.Sorted(maps.Keys(k)) {
		if !yield(key, len(k[key])) {
			return
		}
	}
}

func (k objectsByKey) Objects(key string, yield func(object string, item any) bool) {
	for _, object := range k[key] {
		if !yield(object, nil) {
			return
		}
	}
}

// metricSource returns the metrics of a resource with indexes of these objects. It verifies that the decoded
// objects and their JSON have the same keys.
func metricSource(t *testing.T, r *indexers.Resource, objects ...string) indexers.MetricSource {
	t.Helper()
	functions := indexers.CompileIndexes(r.CacheIndexes()...)
	caches := map[string]objectsByKey{}
	for _, name := range functions.Names() {
		caches[name] = objectsByKey{}
	}
	for _, text := range objects {
		document, err := yaml.YAMLToJSON([]byte(text))
		noError(t, err)
		var object map[string]any
		noError(t, json.Unmarshal(document, &object))
		keys := functions.KeysJSON(document, nil)
		if diff := cmp.Diff(functions.Keys(object), keys, cmp.Transformer("empty", func(k []string) []string {
			return append([]string{}, k...)
		})); diff != "" {
			t.Errorf("keys (-decoded +JSON):\n%s", diff)
		}
		metadata := object["metadata"].(map[string]any)
		name := fmt.Sprint(metadata["name"])
		if ns, ok := metadata["namespace"]; ok {
			name = fmt.Sprintf("%s/%s", ns, name)
		}
		for i, indexKeys := range keys {
			for _, key := range indexKeys {
				cache := caches[functions.Names()[i]]
				cache[key] = append(cache[key], name)
			}
		}
	}
	return indexers.MetricSource{Metrics: r.Metrics, Synced: true, Skipped: functions.Skipped,
		Index: func(name string) (indexers.MetricIndex, bool) {
			index, ok := caches[name]
			return index, ok
		}}
}

// formatFamilies returns the series in the text format. It omits the crdcache_ series that are 0.
func formatFamilies(families iter.Seq[indexers.MetricFamily]) string {
	var b strings.Builder
	for f := range families {
		for _, s := range f.Series {
			var labels []string
			for _, l := range s.Labels {
				labels = append(labels, fmt.Sprintf("%s=%q", l.Name, l.Value))
			}
			if s.Value != 0 || !strings.HasPrefix(f.Name, "crdcache_") {
				fmt.Fprintf(&b, "%s{%s} %v\n", f.Name, strings.Join(labels, ","), s.Value)
			}
		}
	}
	return b.String()
}

var metricObjects = []string{`
metadata: {name: lamp, namespace: home, labels: {team: light, example.com/zone: a}, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {class: gold, watts: 60, paused: false, share: 25%, memory: 1Ki, timeout: 90s, hosts: [a, b]}
status:
  phase: Active
  conditions: [{type: Ready, status: "True"}, {type: Hot, status: "False"}]
  parts: {bulb: {ready: 2, kind: led}, cable: {ready: 1}}
  counts: {p: 3, q: 4, r: 4}
  odd: [NaN, inf, "-Infinity", 1e400, 1e308, 1e308, 5]
`, `
metadata: {name: fan, namespace: home}
spec: {class: gold, watts: "1e3", paused: true}
status: {phase: Idle, conditions: [{type: Ready, status: "True"}, {type: Ready, status: "Unknown"}]}
`, `
metadata: {name: lamp, namespace: office}
spec: {class: null, watts: bright, settings: {"0": a, "": b, __name__: c, "ü": d}}
`}

func TestMetrics(t *testing.T) {
	tests := map[string]struct{ metric, want string }{
		"all objects": {`{}`, "m{} 3\n"},
		"no objects":  {`{when: '@.spec.class == "tin"'}`, "m{} 0\n"},
		"a declared index": {`{index: class}`, `m{class="gold"} 2
`},
		"labels": {`{labels: [{name: ns, path: .metadata.namespace}, {name: class, path: .spec.class}]}`,
			`m{class="gold",ns="home"} 2
m{ns="office"} 1
`},
		"a condition": {`{when: '@.spec.paused == true', labels: [{name: class, path: .spec.class}]}`,
			`m{class="gold"} 1
`},
		"every object": {`{labels: [{name: namespace, path: .metadata.namespace}, {name: name, path: .metadata.name}, {name: x, value: "y"}], value: {path: .spec.watts}}`,
			`m{name="fan",namespace="home",x="y"} 1000
m{name="lamp",namespace="home",x="y"} 60
crdcache_metric_skipped_values_total{metric="m"} 2
`},
		"sum": {`{value: {path: .spec.watts}}`, "m{} 1060\ncrdcache_metric_skipped_values_total{metric=\"m\"} 2\n"},
		"max": {`{value: {path: .spec.watts}, function: Max, labels: [{name: class, path: .spec.class}]}`,
			"m{class=\"gold\"} 1000\ncrdcache_metric_skipped_values_total{metric=\"m\"} 2\n"},
		"min":                    {`{value: {path: .spec.watts}, function: Min}`, "m{} 60\ncrdcache_metric_skipped_values_total{metric=\"m\"} 2\n"},
		"a boolean":              {`{value: {path: .spec.paused}}`, "m{} 1\n"},
		"a percentage":           {`{value: {path: .spec.share}}`, "m{} 0.25\n"},
		"a quantity":             {`{value: {path: .spec.memory}}`, "m{} 1024\n"},
		"a time":                 {`{value: {path: .metadata.creationTimestamp}}`, "m{} 1.7672256e+09\n"},
		"a typed time":           {`{value: {path: .metadata.creationTimestamp, type: Time}}`, "m{} 1.7672256e+09\n"},
		"a duration":             {`{value: {path: .spec.timeout, type: Duration}}`, "m{} 90\n"},
		"a default":              {`{value: {path: .spec.memory, default: '1'}}`, "m{} 1026\n"},
		"map keys":               {`{each: .status.parts.*, labels: [{name: part, elementKey: true}, {name: kind, path: .kind}], value: {path: .ready}}`, "m{kind=\"led\",part=\"bulb\"} 2\nm{part=\"cable\"} 1\n"},
		"map of numbers":         {`{each: .status.counts.*, labels: [{name: k, elementKey: true}], value: {path: '@'}}`, "m{k=\"p\"} 3\nm{k=\"q\"} 4\nm{k=\"r\"} 4\n"},
		"sum of elements":        {`{each: .status.counts.*, value: {path: '@'}}`, "m{} 11\n"},
		"max of elements":        {`{each: .status.counts.*, value: {path: '@'}, function: Max}`, "m{} 4\n"},
		"no numbers":             {`{each: .status.odd, value: {path: '@'}, function: Max}`, "m{} 1e+308\ncrdcache_metric_skipped_values_total{metric=\"m\"} 8\n"},
		"a sum beyond the range": {`{each: .status.odd, value: {path: '@'}}`, "m{} +Inf\ncrdcache_metric_skipped_values_total{metric=\"m\"} 8\n"},
		"list elements": {`{each: .spec.hosts, labels: [{name: host, path: '@'}, {name: name, path: $.metadata.name}]}`,
			"m{host=\"a\",name=\"lamp\"} 1\nm{host=\"b\",name=\"lamp\"} 1\n"},
		"conditions": {`{each: .status.conditions, labels: [{name: type, path: .type}, {name: status, path: .status}]}`,
			`m{status="False",type="Hot"} 1
m{status="True",type="Ready"} 2
m{status="Unknown",type="Ready"} 1
`},
		"states": {`{labels: [{name: class, path: .spec.class}], states: {name: phase, path: .status.phase, values: [Active, Failed]}}`,
			`m{class="gold",phase="Active"} 1
m{class="gold",phase="Failed"} 0
`},
		"labels of a map": {`{labels: [{name: "label_*", path: .metadata.labels}, {name: label_team, path: .spec.class}]}`,
			`m{} 1
m{label_team="gold"} 1
m{label_example_com_zone="a",label_team="gold"} 1
`},
		"a list as a label": {`{labels: [{name: hosts, path: .spec.hosts}, {name: class, path: .spec.class}]}`,
			"m{} 1\nm{class=\"gold\"} 2\ncrdcache_metric_skipped_values_total{metric=\"m\"} 2\n"},
		"printed labels": {`{labels: [{name: a, path: .spec.hosts, format: Go}, {name: b, path: .status.counts, format: Go}, {name: "p_*", path: .status.parts, format: Go}], when: '@.spec.hosts'}`,
			"m{a=\"[a b]\",b=\"map[p:3 q:4 r:4]\",p_bulb=\"map[kind:led ready:2]\",p_cable=\"map[ready:1]\"} 1\n"},
		"hostile names of labels": {`{labels: [{name: "*", path: .spec.settings}]}`, "m{} 2\nm{_=\"b\",_0=\"a\",_name__=\"c\"} 1\n"},
		"a limit": {`{limit: 1, labels: [{name: namespace, path: .metadata.namespace}, {name: name, path: .metadata.name}, {name: fixed, value: x}]}`,
			`m{fixed="x",name="lamp",namespace="home"} 1
m{fixed="x",name="other",namespace="other"} 2
crdcache_metric_limited_values{metric="m"} 2
`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			resource := metricResource(t, "    - {name: m, help: Help., "+strings.TrimPrefix(tt.metric, "{"))
			got := formatFamilies(indexers.ReadMetrics(metricSource(t, resource, metricObjects...)))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("series (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLabelsNeverRemoveSeries verifies that each object counts, whatever value or failure a label has.
func TestLabelsNeverRemoveSeries(t *testing.T) {
	objects := append(slices.Clone(metricObjects), "metadata: {name: long}\nspec: {class: "+strings.Repeat("x", 1<<17)+"}")
	for label, skipped := range map[string]int{
		`path: .spec.hosts`:                       1, // a list
		`path: .spec.settings`:                    1, // a map
		`path: .spec`:                             4,
		`path: .spec.hosts, missing: Report`:      1,
		`path: .spec.hosts, default: none`:        1,
		`path: .spec.class`:                       0,
		`path: .spec.class, type: Int`:            3,
		`path: .spec.class, regex: {match: "^x"}`: 1, // longer than 64 KiB
		`path: .spec.hosts, format: Go`:           0,
		`path: .status, format: Go`:               0,
	} {
		for name, elements := range map[string]string{"x": "", `"x*"`: "", "y": "each: .metadata, "} {
			if elements != "" {
				label = strings.Replace(label, "path: .", "path: $.", 1)
			}
			resource := metricResource(t, "    - {name: m, help: Help., "+elements+"labels: [{name: "+name+", "+label+"}, {name: ns, path: $.metadata.namespace}]}")
			source := metricSource(t, resource, objects...)
			total := 0.0
			for family := range indexers.ReadMetrics(source) {
				for _, s := range family.Series {
					if family.Name == "m" {
						total += s.Value
					}
				}
			}
			if total != float64(len(objects)) {
				t.Errorf("label %s of %s counts %v of %d objects", name, label, total, len(objects))
			}
			// Keys and KeysJSON have both counted
			if got := source.Skipped("metrics/m"); name != `"x*"` && got != uint64(2*skipped) {
				t.Errorf("label %s of %s counts %d skipped values, want %d", name, label, got, 2*skipped)
			}
		}
	}
}

// TestContainerRemedies verifies that the parser accepts the remedies for a path that ends at a list or map.
func TestContainerRemedies(t *testing.T) {
	definition := widgetDefinition()
	spec := definition.Versions[0].Schema.Properties["spec"].Properties
	spec["env"] = &crd.Schema{Type: "object", AdditionalProperties: &crd.Schema{Type: "string"}}
	for declared, want := range map[string]string{
		"indexes: [{name: i, path: .spec.names}]":                                                                "add [*] for all elements",
		"indexes: [{name: i, path: '.spec.names[*]'}]":                                                           "",
		"indexes: [{name: i, path: .spec.env}]":                                                                  "name one of its fields, or add .*",
		"indexes: [{name: i, path: .spec.env.*}]":                                                                "",
		"indexes: [{name: i, key: [{name: a, path: '.spec.names[*]'}, {name: b, path: .spec.names}]}]":           "select an element, such as [0], or write each:",
		"metrics: [{name: m, help: h, labels: [{name: l, path: .spec.names}]}]":                                  "select an element, such as [0], or write each:",
		"metrics: [{name: m, help: h, labels: [{name: l, path: '.spec.names[0]'}]}]":                             "",
		"metrics: [{name: m, help: h, each: .spec.names, labels: [{name: l, path: '@'}]}]":                       "",
		"metrics: [{name: m, help: h, labels: [{name: l, path: .spec.env}]}]":                                    "name one of its fields, or end the name of the label in *",
		"metrics: [{name: m, help: h, labels: [{name: 'l*', path: .spec.env}]}]":                                 "",
		"metrics: [{name: m, help: h, labels: [{name: 'l*', path: .spec.names}]}]":                               "E302: .spec.names is a list, and a label whose name ends in * reads a map; remove the *",
		"metrics: [{name: m, help: h, labels: [{name: l, path: .spec.names, format: Go}]}]":                      "",
		"metrics: [{name: m, help: h, value: {path: .spec.names}}]":                                              "select an element, such as [0], or write each:",
		"references: [{name: r, to: {group: '', kind: Secret, namePath: .spec.names}}]":                          "select an element, such as [0], or write each:",
		"references: [{name: r, each: '.spec.names[*]', to: {group: example.com, kind: Widget, namePath: '@'}}]": "",
	} {
		config := parse(t, "  - name: w\n    match: {group: example.com, kind: Widget}\n    "+declared+"\n")
		_, err := config.Check([]*crd.Definition{definition})
		if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s\n%v, want %q", declared, err, want)
		}
	}
}

func metricResource(t *testing.T, metrics string) *indexers.Resource {
	t.Helper()
	return parse(t, `  - name: widgets
    match: {group: example.com, resource: widgets}
    indexes: [{name: class, path: .spec.class}]
    metrics:
`+metrics+"\n").Resources[0]
}

var documentedMetric = regexp.MustCompile("(?s)```yaml\n(- .*?)```\n\n```\n(.*?)```\n")

// TestDocumentedMetrics verifies that every example of the documentation has the documented series.
func TestDocumentedMetrics(t *testing.T) {
	data, err := os.ReadFile("../docs/metrics.md")
	noError(t, err)
	text, _, _ := strings.Cut(string(data), "\n## Replicas")
	_, docs, _ := strings.Cut(text, "look at these objects:\n\n```yaml\n")
	text, docs, _ = strings.Cut(docs, "```")
	var list []any
	noError(t, yaml.Unmarshal([]byte(text), &list))
	var objects []string
	for _, object := range list {
		document, _ := json.Marshal(object)
		objects = append(objects, string(document))
	}
	found := documentedMetric.FindAllStringSubmatch(docs, -1)
	if n := strings.Count(docs, "```yaml"); len(found) != n || n < 5 {
		t.Fatalf("%d of %d examples have series", len(found), n)
	}
	for _, example := range found {
		resource := metricResource(t, "    "+strings.ReplaceAll(example[1], "\n", "\n    "))
		families := indexers.ReadMetrics(metricSource(t, resource, objects...))
		got := strings.SplitAfter(formatFamilies(families), "\n")
		slices.Sort(got)
		want := strings.SplitAfter(example[2], "\n")
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s(-documented +got):\n%s", example[1], diff)
		}
	}
}
