// Package statemetrics compares the metrics of index configs with kube-state-metrics. It is a separate
// module, because kube-state-metrics does not compile with the client-go of other modules.
package statemetrics

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kube-state-metrics/v2/pkg/customresourcestate"
	"k8s.io/kube-state-metrics/v2/pkg/metric"
	generator "k8s.io/kube-state-metrics/v2/pkg/metric_generator"
	metricsstore "k8s.io/kube-state-metrics/v2/pkg/metrics_store"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{}) // kube-state-metrics logs each metric
	os.Exit(m.Run())
}

// run runs a program of the module and returns its output.
func run(t testing.TB, program string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, stderr.String())
	}
	return string(out)
}

// buildCrdcache returns the program crdcache.
func buildCrdcache(t testing.TB) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "crdcache")
	run(t, "env", "GOFLAGS=-buildvcs=false", "go", "build", "-C", "../../../cmd/crdcache", "-ldflags=-s -w", "-o",
		program, ".")
	return program
}

// convert converts a config of kube-state-metrics with the program crdcache.
func convert(t testing.TB, program, config string) *indexers.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	text := run(t, program, "import", "kube-state-metrics", file)
	converted, err := indexers.Parse(indexers.Source{Name: "converted.yaml", Data: []byte(text)})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return converted
}

// series are values by name and labels.
type series map[string]float64

// kubeStateMetricsSeries returns the series of kube-state-metrics.
func kubeStateMetricsSeries(t testing.TB, config string, objects []*unstructured.Unstructured) series {
	t.Helper()
	var text bytes.Buffer
	for _, store := range newStores(t, config, objects...) {
		for _, o := range objects {
			if o.GroupVersionKind() == store.kind {
				if err := store.Add(o); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := metricsstore.NewMetricsWriter("", store.MetricsStore).WriteAll(&text); err != nil {
			t.Fatal(err)
		}
	}
	var lines strings.Builder
	for line := range strings.SplitAfterSeq(text.String(), "\n") {
		if !strings.HasPrefix(line, "#") { // the parser does not know the types info and stateset
			lines.WriteString(line)
		}
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(lines.String()))
	if err != nil {
		t.Fatal(err)
	}
	out := series{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			out[format(name, labels)] += m.GetUntyped().GetValue() // crdcache adds up equal labels, too
		}
	}
	return out
}

// store has the metrics of one resource of a config of kube-state-metrics.
type store struct {
	*metricsstore.MetricsStore
	kind schema.GroupVersionKind
}

// newStores returns the stores of a config. objects are the types of the cluster, for a kind or version that
// the config leaves open.
func newStores(t testing.TB, config string, objects ...*unstructured.Unstructured) (out []store) {
	t.Helper()
	var parsed customresourcestate.Metrics
	if err := yaml.Unmarshal([]byte(config), &parsed); err != nil {
		t.Fatal(err)
	}
	for _, r := range resolve(parsed.Spec.Resources, objects) {
		for i := range r.Metrics {
			r.Metrics[i].Each.Type = metric.Type(strings.ToLower(string(r.Metrics[i].Each.Type)))
		}
		factory, err := customresourcestate.NewCustomResourceMetrics(r)
		if err != nil {
			t.Fatal(err)
		}
		families := factory.MetricFamilyGenerators()
		headers := generator.ExtractMetricFamilyHeaders(families)
		written := metricsstore.NewMetricsStore(headers, generator.ComposeMetricGenFuncs(families))
		out = append(out, store{written, schema.GroupVersionKind(r.GroupVersionKind)})
	}
	return out
}

// resolve resolves open kinds and versions as kube-state-metrics does, for the types of objects.
func resolve(resources []customresourcestate.Resource,
	objects []*unstructured.Unstructured) (out []customresourcestate.Resource) {
	for _, r := range resources {
		resolved := map[schema.GroupVersionKind]bool{}
		isOpen := func(pattern string) bool { return pattern == "" || pattern == "*" }
		if gvk := r.GroupVersionKind; !isOpen(gvk.Version) && !isOpen(gvk.Kind) {
			resolved[schema.GroupVersionKind(gvk)] = true
		}
		for _, o := range objects {
			gvk, want := o.GroupVersionKind(), r.GroupVersionKind
			if want.Group == gvk.Group && (isOpen(want.Version) || want.Version == gvk.Version) &&
				(isOpen(want.Kind) || want.Kind == gvk.Kind) {
				resolved[gvk] = true
			}
		}
		for gvk := range resolved {
			r.GroupVersionKind = customresourcestate.GroupVersionKind(gvk)
			r.CommonLabels = maps.Clone(r.CommonLabels)
			out = append(out, r)
		}
	}
	return out
}

// crdcacheSeries returns the series of crdcache for a converted config.
func crdcacheSeries(t testing.TB, config *indexers.Config, objects []*unstructured.Unstructured) series {
	t.Helper()
	var sources []indexers.MetricSource
	for _, r := range config.Resources {
		functions := indexers.CompileIndexes(r.CacheIndexes()...)
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, functions.Indexers())
		for _, o := range objects {
			gvk := o.GroupVersionKind()
			if r.Match.MatchesVersion(gvk.GroupVersion().WithResource(""), gvk.Kind) {
				if err := indexer.Add(o); err != nil {
					t.Fatal(err)
				}
			}
		}
		gvr := schema.GroupVersionResource{Group: r.Match.Group, Version: r.Match.Version, Resource: r.Name}
		snapshot := query.ForIndexer(indexer, functions).Snapshot()
		sources = append(sources, query.MetricSource(gvr, r.Metrics, snapshot))
	}
	out := series{}
	for family := range indexers.ReadMetrics(sources...) {
		for _, s := range family.Series {
			labels := map[string]string{}
			for _, l := range s.Labels {
				labels[l.Name] = l.Value
			}
			if !strings.HasPrefix(family.Name, "crdcache_") {
				out[format(family.Name, labels)] = s.Value
			}
		}
	}
	return out
}

func format(name string, labels map[string]string) string {
	delete(labels, "")
	var b strings.Builder
	b.WriteString(name)
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		if labels[label] != "" { // an empty label is no label
			b.WriteString(" " + label + "=" + labels[label])
		}
	}
	return b.String()
}

// decode decodes YAML objects.
func decode(t testing.TB, documents ...string) (objects []*unstructured.Unstructured) {
	t.Helper()
	for _, text := range documents {
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}

// widgets are objects with values of every kind that kube-state-metrics converts.
var widgets = []string{`
apiVersion: example.com/v1
kind: Widget
metadata: {name: lamp, namespace: home, uid: u-1, creationTimestamp: "2026-01-31T10:00:00Z", labels: {team: light, example.com/zone: a}, annotations: {cost: "12", owner: ada}}
spec:
  replicas: 3
  paused: false
  target: {kind: Room, name: hall}
  hosts: [a.example.com, b.example.com]
  ports: [{name: http, number: 80, open: true}, {name: dns, number: 53, open: false}]
status:
  phase: Active
  load: "85%"
  memory: 1500Mi
  cpu: 250m
  enabled: "Yes"
  ratio: 2.5
  expires: "2026-03-01T00:00:00Z"
  counts: {on: 3, off: 4}
  parts: {bulb: {ready: 2, wanted: 3, color: red}, cable: {ready: 1, wanted: 1}}
  conditions: [{type: Ready, status: "True", reason: Lit}, {type: Hot, status: "False"}, {type: Odd, status: Unknown}]
`, `
apiVersion: example.com/v1
kind: Widget
metadata: {name: fan, namespace: office, uid: u-2, creationTimestamp: "2026-02-01T10:00:00Z"}
spec: {replicas: 0}
status: {phase: Broken, load: lots, conditions: []}
`, `
apiVersion: example.com/v1
kind: Widget
metadata: {name: empty, namespace: office, uid: u-3}
`}

const widgetConfig = `
kind: CustomResourceStateMetrics
spec:
  resources:
  - groupVersionKind: {group: example.com, version: v1, kind: Widget}
    metricNamePrefix: widget
    commonLabels: {site: berlin, zone: none}
    labelsFromPath: {name: [metadata, name], namespace: [metadata, namespace], zone: [metadata, labels, example.com/zone]}
    metrics:
    - {name: created, help: h, each: {type: gauge, gauge: {path: [metadata, creationTimestamp]}}}
    - {name: created_from, help: h, each: {type: gauge, gauge: {path: [metadata], valueFrom: [creationTimestamp], labelsFromPath: {uid: [uid]}}}}
    - {name: replicas, help: h, each: {type: GAUGE, gauge: {path: [spec, replicas]}}}
    - {name: paused, help: h, each: {type: gauge, gauge: {path: [spec, paused], nilIsZero: true}}}
    - {name: load, help: h, each: {type: gauge, gauge: {path: [status, load]}}}
    - {name: memory, help: h, each: {type: gauge, gauge: {path: [status, memory]}}}
    - {name: cpu, help: h, each: {type: gauge, gauge: {path: [status, cpu]}}}
    - {name: enabled, help: h, each: {type: gauge, gauge: {path: [status, enabled]}}}
    - {name: ratio, help: h, each: {type: gauge, gauge: {path: [status, ratio]}}}
    - {name: expires, help: h, each: {type: gauge, gauge: {path: [status, expires]}}}
    - {name: counts, help: h, each: {type: gauge, gauge: {path: [status, counts], labelFromKey: state}}}
    - {name: parts, help: h, each: {type: gauge, gauge: {path: [status, parts], labelFromKey: part, valueFrom: [ready], labelsFromPath: {color: [color]}}}}
    - {name: parts_without_key, help: h, each: {type: gauge, gauge: {path: [status, parts], valueFrom: [ready], labelsFromPath: {color: [color]}}}}
    - {name: cost, help: h, each: {type: gauge, gauge: {path: [metadata, annotations]}}}
    - {name: port, help: h, each: {type: gauge, gauge: {path: [spec, ports], valueFrom: [number], labelsFromPath: {port: [name]}}}}
    - {name: first_port, help: h, each: {type: gauge, gauge: {path: [spec, ports, "0", number]}}}
    - {name: last_port, help: h, each: {type: gauge, gauge: {path: [spec, ports, "-1", number]}}}
    - {name: port_of_53, help: h, each: {type: gauge, gauge: {path: [spec, ports, "[number=53]", open]}}}
    - {name: open_port, help: h, each: {type: gauge, gauge: {path: [spec, ports, "[open=true]", number]}}}
    - {name: ready, help: h, each: {type: gauge, gauge: {path: [status, conditions, "[type=Ready]", status]}}, labelsFromPath: {reason: [status, conditions, "[type=Ready]", reason]}}
    - {name: condition, help: h, each: {type: gauge, gauge: {path: [status, conditions], valueFrom: [status], labelsFromPath: {type: [type]}}}}
    - {name: condition_status, help: h, each: {type: stateset, stateSet: {path: [status, conditions], valueFrom: [status], labelName: status, list: ["True", "False"], labelsFromPath: {type: [type]}}}}
    - {name: phase, help: h, each: {type: stateset, stateSet: {path: [status, phase], labelName: phase, list: [Active, Idle]}}}
    - {name: phase_from, help: h, each: {type: stateset, stateSet: {path: [status], valueFrom: [phase], labelName: phase, list: [Active, Idle], labelsFromPath: {memory: [memory]}}}}
    - {name: info, help: h, each: {type: info, info: {labelsFromPath: {phase: [status, phase], replicas: [spec, replicas]}}}}
    - {name: target_info, help: h, each: {type: info, info: {path: [spec, target], labelsFromPath: {target_kind: [kind], target: [name]}}}}
    - {name: port_info, help: h, each: {type: info, info: {path: [spec, ports], labelsFromPath: {port: [name], open: [open]}}}}
    - {name: host_info, help: h, each: {type: info, info: {path: [spec, hosts], labelsFromPath: {host: []}}}}
    - {name: part_info, help: h, each: {type: info, info: {path: [status, parts], labelFromKey: part, labelsFromPath: {color: [color]}}}}
    - {name: part_color_info, help: h, each: {type: info, info: {path: [status, parts], labelsFromPath: {color: [color]}}}}
    - {name: owner_info, help: h, each: {type: info, info: {labelsFromPath: {owner: [metadata, annotations, owner=ada]}}}}
    - {name: labels, help: h, labelsFromPath: {"*": [metadata, labels], "annotation_*": [metadata, annotations], "**": [metadata, labels]}, each: {type: gauge, gauge: {path: [spec, replicas]}}}
    - {name: common, help: h, commonLabels: {site: paris, more: "1"}, each: {type: gauge, gauge: {path: [spec, replicas]}}}
`

// readExamples returns the example config of kube-state-metrics, and the configs and the object of its
// documentation.
func readExamples(t *testing.T) (configs map[string]string, objects []*unstructured.Unstructured) {
	t.Helper()
	module := strings.TrimSpace(run(t, "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kube-state-metrics/v2"))
	read := func(file string) string {
		text, err := os.ReadFile(filepath.Join(module, file))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	configs = map[string]string{"example_config": read("pkg/customresourcestate/example_config.yaml"),
		"widgets": widgetConfig}
	objects = decode(t, widgets...)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(
		read("docs/metrics/extend/customresourcestate-metrics.md"), -1)
	for _, block := range blocks {
		switch text := block[1]; {
		case strings.HasPrefix(text, "kind: Foo"):
			foo := decode(t, text)[0]
			foo.SetAPIVersion("myteam.io/v1") // the document has the letter l
			foo.SetUID("foo")
			objects = append(objects, foo)
		case strings.Contains(text, "kind: CustomResourceStateMetrics") && !strings.Contains(text, "...") &&
			!strings.Contains(text, `"*" #`):
			name := regexp.MustCompile(`- name: "?(\w+)`).FindStringSubmatch(text)[1]
			configs["documentation of "+name] = text
		}
	}
	if len(configs) < 8 {
		t.Fatalf("only %d configs were found in %s", len(configs), module)
	}
	return configs, objects
}

// TestEqualSeries compares the series of kube-state-metrics with those of the converted config, for its own
// examples and for a config with all of its features.
func TestEqualSeries(t *testing.T) {
	configs, objects := readExamples(t)
	objects = append(objects, decode(t, `
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: hamster, namespace: default, uid: v, annotations: {foo: "123"}}
spec: {targetRef: {kind: Deployment, name: hamster}}
status: {recommendation: {containerRecommendations: [{containerName: c, lowerBound: {memory: 1Gi, cpu: 25m}}]}}
`, `
apiVersion: myteam.io/v1
kind: Foo
metadata: {name: conditions, namespace: default, uid: c}
status: {conditions: [{type: Ready, status: "True"}, {type: Old, status: "False"}]}
`)...)
	program := buildCrdcache(t)
	total := 0
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		t.Run(name, func(t *testing.T) {
			want := kubeStateMetricsSeries(t, configs[name], objects)
			got := crdcacheSeries(t, convert(t, program, configs[name]), objects)
			total += len(want)
			if diff := gocmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
				t.Errorf("series (-kube-state-metrics +crdcache):\n%s", diff)
			}
			if len(want) == 0 {
				t.Error("the config has no series")
			}
		})
	}
	t.Logf("%d configs, %d series", len(configs), total)
}
