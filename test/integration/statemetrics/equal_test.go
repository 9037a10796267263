package statemetrics

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// resource is a resource of a config of kube-state-metrics. raw has all its fields.
type resource struct {
	GroupVersionKind struct{ Group, Version, Kind string }
	ResourcePlural   string
	MetricNamePrefix *string
	LabelsFromPath   map[string][]string
	Metrics          []struct {
		Name           string
		LabelsFromPath map[string][]string
		Each           struct {
			Type                  string
			Gauge, StateSet, Info *values
		}
	}
	raw map[string]any
}

// values are the paths of a metric.
type values struct {
	Path, ValueFrom []string
	LabelsFromPath  map[string][]string
	LabelFromKey    string
	NilIsZero       bool
}

// kind returns the kind and version of the objects of a resource whose config may leave them open.
func (r resource) kind() (group, version, kind string) {
	gvk := r.GroupVersionKind
	version, kind = strings.Trim(gvk.Version, "*"), strings.Trim(gvk.Kind, "*")
	if version == "" {
		version = "v1"
	}
	if kind == "" {
		kind = "Any"
	}
	return gvk.Group, version, kind
}

// infoNames returns the names of the infos. Of equal elements, Prometheus takes the first.
func infoNames(resources []resource) map[string]bool {
	names := map[string]bool{}
	for _, r := range resources {
		prefix := "kube_customresource_"
		if r.MetricNamePrefix != nil {
			prefix = strings.TrimPrefix(*r.MetricNamePrefix+"_", "_")
		}
		for _, m := range r.Metrics {
			if m.Each.Info != nil {
				names[prefix+m.Name] = true
			}
		}
	}
	return names
}

// resourcesOf returns the resources of a file: a config, or a ConfigMap or Helm values with one.
func resourcesOf(t *testing.T, text string) (out []resource) {
	t.Helper()
	var find func(v any)
	find = func(v any) {
		switch v := v.(type) {
		case string:
			var inner any
			if strings.Contains(v, "groupVersionKind") && yaml.Unmarshal([]byte(v), &inner) == nil {
				find(inner)
			}
		case []any:
			for _, e := range v {
				find(e)
			}
		case map[string]any:
			spec, _ := v["spec"].(map[string]any)
			if resources, ok := spec["resources"].([]any); ok {
				for _, raw := range resources {
					data, _ := yaml.Marshal(raw)
					r := resource{raw: raw.(map[string]any)}
					if err := yaml.Unmarshal(data, &r); err != nil {
						t.Fatal(err)
					}
					out = append(out, r)
				}
				return
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				find(v[key])
			}
		}
	}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var parsed any
		if err := yaml.Unmarshal([]byte(document), &parsed); err != nil {
			t.Fatal(err)
		}
		find(parsed)
	}
	if len(out) == 0 {
		t.Fatal("no resources")
	}
	return out
}

// seenVersion finds the version of an object in the metric that awaitable adds.
var seenVersion = regexp.MustCompile(` seen_version=(\d+)`)

// awaitable writes the config of resources whose series name their object, with a metric that shows which
// versions of the objects an exporter has seen.
func awaitable(t *testing.T, resources []resource) (file string) {
	t.Helper()
	var raw []any
	for _, r := range resources {
		labels, _ := r.raw["labelsFromPath"].(map[string]any)
		if labels = maps.Clone(labels); labels == nil {
			labels = map[string]any{}
		}
		labels["seen_object"] = []any{"metadata", "name"}
		changed := maps.Clone(r.raw)
		changed["labelsFromPath"] = labels
		metrics, _ := r.raw["metrics"].([]any)
		changed["metrics"] = append(slices.Clone(metrics), map[string]any{"name": "seen", "help": "Seen.", "each": map[string]any{
			"type": "Info", "info": map[string]any{"labelsFromPath": map[string]any{
				"seen_version": []any{"metadata", "resourceVersion"}}}}})
		raw = append(raw, changed)
	}
	return writeConfig(t, raw)
}

func writeConfig(t *testing.T, resources []any) (file string) {
	t.Helper()
	data, err := yaml.Marshal(map[string]any{"kind": "CustomResourceStateMetrics",
		"spec": map[string]any{"resources": resources}})
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// comparison runs both exporters for a config and compares their series.
type comparison struct {
	kubeStateMetrics, crdcache exporter
	infos                      map[string]bool
	clients                    map[string]dynamic.ResourceInterface // by apiVersion and kind
	total                      int
}

// compare installs the types of a config and starts both exporters.
func compare(t *testing.T, resources []resource) *comparison {
	t.Helper()
	client, err := dynamic.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	c := &comparison{infos: infoNames(resources), clients: map[string]dynamic.ResourceInterface{}}
	definitions := map[string]*unstructured.Unstructured{}
	for _, r := range resources {
		group, version, kind := r.kind()
		definition := harness.NewCRD(group, kind)
		definition.SetAnnotations(map[string]string{"api-approved.kubernetes.io": "unapproved"})
		if r.ResourcePlural != "" {
			definition.SetName(r.ResourcePlural + "." + group)
			_ = unstructured.SetNestedField(definition.Object, r.ResourcePlural, "spec", "names", "plural")
		}
		versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		versions[0].(map[string]any)["name"] = version
		_ = unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions")
		definitions[definition.GetName()] = definition
		plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
		gvr := schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
		c.clients[group+"/"+version+" "+kind] = client.Resource(gvr).Namespace("default")
	}
	harness.InstallCRDs(t, slices.Collect(maps.Values(definitions))...)
	config := awaitable(t, resources)
	c.kubeStateMetrics = startKubeStateMetrics(t, harness.Kubeconfig(t), config)
	c.crdcache = startCrdcache(t, harness.Kubeconfig(t), config)
	return c
}

// put creates or replaces objects.
func (c *comparison) put(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		client := c.clients[o.GetAPIVersion()+" "+o.GetKind()]
		existing, err := client.Get(t.Context(), o.GetName(), metav1.GetOptions{})
		if err == nil {
			o.SetResourceVersion(existing.GetResourceVersion())
			_, err = client.Update(t.Context(), o, metav1.UpdateOptions{})
		} else {
			_, err = client.Create(t.Context(), o, metav1.CreateOptions{})
		}
		if err != nil {
			text, _ := yaml.Marshal(o)
			t.Fatalf("%v\n%s", err, text)
		}
	}
}

// check compares the series of the objects that the server has.
func (c *comparison) check(t *testing.T) {
	t.Helper()
	var versions []string
	for _, client := range c.clients {
		list, err := client.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			versions = append(versions, o.GetResourceVersion())
		}
	}
	slices.Sort(versions)
	want, got := c.kubeStateMetrics.await(t, versions), c.crdcache.await(t, versions)
	for series := range want {
		if c.infos[strings.Fields(series)[0]] {
			want[series] = 1
		}
	}
	c.total += len(want)
	if diff := gocmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Fatalf("series (-kube-state-metrics +crdcache):\n%s", diff)
	}
}

// decode decodes YAML objects.
func decode(t *testing.T, documents ...string) (objects []*unstructured.Unstructured) {
	t.Helper()
	for _, text := range documents {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		o.SetNamespace("")
		objects = append(objects, o)
	}
	return objects
}

// readExamples returns the example config of kube-state-metrics, and the configs and the object of its
// documentation.
func readExamples(t *testing.T) (configs map[string]string, objects []*unstructured.Unstructured) {
	t.Helper()
	read := func(path ...string) string {
		text, err := os.ReadFile(filepath.Join(path...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	configs = map[string]string{"widgets": read("testdata/widgets/config.yaml"),
		"example_config": read(*sourcesFlag, "pkg/customresourcestate/example_config.yaml")}
	objects = decode(t, strings.Split(read("testdata/widgets/objects.yaml"), "\n---\n")...)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(
		read(*sourcesFlag, "docs/metrics/extend/customresourcestate-metrics.md"), -1)
	for _, block := range blocks {
		switch text := block[1]; {
		case strings.HasPrefix(text, "kind: Foo"):
			foo := decode(t, text)[0]
			foo.SetAPIVersion("myteam.io/v1") // the document has the letter l
			objects = append(objects, foo)
		case strings.Contains(text, "kind: CustomResourceStateMetrics") && !strings.Contains(text, "...") &&
			!strings.Contains(text, `"*" #`):
			name := regexp.MustCompile(`- name: "?(\w+)`).FindStringSubmatch(text)[1]
			configs["documentation of "+name] = text
		}
	}
	if len(configs) < 8 {
		t.Fatalf("only %d configs were found in %s", len(configs), *sourcesFlag)
	}
	return configs, objects
}

// TestEqualSeries compares the series of kube-state-metrics with those of the converted config, for its own
// examples and for a config with all of its features.
func TestEqualSeries(t *testing.T) {
	requireProgram(t)
	configs, objects := readExamples(t)
	objects = append(objects, decode(t, `
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: hamster, annotations: {foo: "123"}}
spec: {targetRef: {kind: Deployment, name: hamster}}
status: {recommendation: {containerRecommendations: [{containerName: c, lowerBound: {memory: 1Gi, cpu: 25m}}]}}
`, `
apiVersion: myteam.io/v1
kind: Foo
metadata: {name: conditions}
status: {conditions: [{type: Ready, status: "True"}, {type: Old, status: "False"}]}
`)...)
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		t.Run(name, func(t *testing.T) {
			c := compare(t, resourcesOf(t, configs[name]))
			c.put(t, slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
				return c.clients[o.GetAPIVersion()+" "+o.GetKind()] == nil
			}))
			if c.check(t); c.total == 0 {
				t.Error("the config has no series")
			}
		})
	}
}

// TestEqualShapes compares the series of configs in the forms that projects publish, for generated objects
// that are created, changed and deleted.
func TestEqualShapes(t *testing.T) {
	requireProgram(t)
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
			resources := resourcesOf(t, string(published))
			var raw []any
			for _, r := range resources {
				raw = append(raw, r.raw)
			}
			if diff := gocmp.Diff(convert(t, writeConfig(t, raw)), convert(t, file)); diff != "" {
				t.Errorf("the form of the file changes its meaning:\n%s", diff)
			}
			c := compare(t, resources)
			for round := range uint64(3) {
				for n := range 20 {
					g := newGenerator(round, n)
					for _, r := range resources {
						c.put(t, []*unstructured.Unstructured{g.object(r, n)})
					}
				}
				c.check(t)
			}
			for _, client := range c.clients {
				if err := client.Delete(t.Context(), "o3", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			c.check(t)
			t.Logf("%d series", c.total)
			if c.total < 60 {
				t.Error("too few series")
			}
		})
	}
}
