package indexers_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
)

// loadObjects reads the objects of a kind in the project's test data.
func loadObjects(t testing.TB, kind string) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob("../testdata/objects/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var out []*unstructured.Unstructured
	for _, path := range files {
		data, err := os.ReadFile(path)
		noError(t, err)
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			u := &unstructured.Unstructured{}
			if err := decoder.Decode(u); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(path, err)
			}
			if u.GetKind() == kind {
				out = append(out, u)
			}
		}
	}
	return out
}

// loadConfigs returns the example configs and verifies that they have no warnings.
func loadConfigs(t testing.TB) *indexers.Config {
	t.Helper()
	c, err := indexers.Load("../testdata/indexes/platform.yaml", "../testdata/indexes/cert-manager.yaml")
	noError(t, err)
	if len(c.Warnings) > 0 {
		t.Errorf("warnings of the example configs = %v, want none", c.Warnings)
	}
	return c
}

func TestExampleConfigsFitTheCRDs(t *testing.T) {
	warnings, err := loadConfigs(t).Check(definitions(t))
	noError(t, err)
	if len(warnings) != 1 || warnings[0].Code != "W304" {
		t.Errorf("Check = %v, want only W304 for the certificates, which are optional", warnings)
	}
}

// TestExampleConfigsMatchObjects verifies that every index of the example configs has values, that the
// statistics agree with the store, and that indexing does not change objects.
func TestExampleConfigsMatchObjects(t *testing.T) {
	kinds := map[string]string{"workloads": "Workload", "routes": "Route", "releases": "Release",
		"environments": "Environment"}
	config := loadConfigs(t)
	for name, kind := range kinds {
		r, _ := config.Resource(name)
		functions := indexers.Compile(r)
		store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, functions.Indexers())
		kindObjects := loadObjects(t, kind)
		for _, o := range kindObjects {
			before := o.DeepCopy()
			noError(t, store.Add(o))
			if diff := cmp.Diff(before.Object, o.Object); diff != "" {
				t.Fatalf("Add changed %s (-before +after):\n%s", o.GetName(), diff)
			}
		}
		for _, s := range functions.Stats() {
			if s.Seen != uint64(len(kindObjects)) || s.Matched == 0 || s.Failed != 0 {
				t.Errorf("%s: Stats = %+v, want %d seen, some matched, none failed", name, s, len(kindObjects))
			}
			if n := len(store.ListIndexFuncValues(s.Index)); n == 0 || uint64(n) > s.Values {
				t.Errorf("%s: the store has %d values, want between 1 and Values of %+v", name, n, s)
			}
		}
	}
}

// TestPrunedIndexes verifies that fields that an index reads are not pruned, and that a warning reports them.
func TestPrunedIndexes(t *testing.T) {
	for _, test := range []struct {
		prune, index string
		want         bool
	}{
		{"remove: [.spec.a]", "path: .spec.a", true},
		{"remove: [.spec.a]", "path: .spec.a.b", true},
		{"remove: [.spec.a.b]", "path: .spec.a", false},
		{"remove: ['.spec.a[*].x']", "{path: .spec.b, when: '@.spec.a[?(@.y==1)]'}", false},
		{"remove: ['.spec.a[*].x']", "{path: .spec.b, when: '@.spec.a[?(@.x==1)]'}", true},
		{"remove: ['.spec.a[*].x.y']", "{path: .spec.b, when: '@.spec.a[?(@.x[?(@.y==1)])]'}", true},
		{"remove: [.spec.a]", "path: .spec.b", false},
		{"remove: ['.spec.a[*].x']", "path: '.spec.a[0].x'", true},
		{"remove: ['.spec.a[*].x']", "path: '.spec.a[*].y'", false},
		{"remove: ['.spec.a[*].x']", "path: '.spec.a[?(@.x==1)].y'", true},
		{"remove: ['.spec.a[*].x']", "path: '.spec.a[?(@.z==1)].y'", false},
		{"remove: [.spec.a]", "path: ..a", true},
		{"remove: [.spec.a]", "{path: .spec.b, when: '@.spec.a == 1'}", true},
		{"remove: [.spec.a]", "{path: .spec.b, when: '@.spec.c == 1'}", false},
		{"remove: ['.spec.a[*].x']", "{each: '.spec.a[*]', key: [{name: k, path: .x}]}", true},
		{"remove: ['.spec.a[*].x']", "{each: '.spec.a[*]', key: [{name: k, path: .y}]}", false},
		{"remove: ['.spec.a[*].x']", "{each: '.spec.a[?(@.x)]', key: [{name: k, path: .y}]}", true},
		{"presets: [ManagedFields]", "path: '.metadata.managedFields[*].manager'", true},
		{"presets: [LastApplied]", "annotation: kubectl.kubernetes.io/last-applied-configuration", true},
		{"presets: [LastApplied]", "annotation: a.b/c", false},
		{`remove: ['.metadata.annotations["a.b/c"]']`, "annotation: a.b/c", true},
		{`remove: ['.metadata.annotations["a.b/c"]']`, "label: a.b/c", false},
	} {
		index := strings.Trim(test.index, "{}")
		if strings.HasPrefix(test.index, "{each") { // the last brace belongs to the key
			index = strings.TrimSuffix(strings.TrimPrefix(test.index, "{"), "}")
		}
		text := strings.Replace(configWith("  - name: w\n    match: {group: example.com, kind: Widget}\n    prune: {"+
			test.prune+"}\n    indexes: [{name: i, "+index+"}]\n"), "NAME", "n", 1)
		c, err := indexers.Parse(indexers.Source{Name: "w.yaml", Data: []byte(text)})
		if err != nil {
			t.Errorf("Parse with %s and %s: %v", test.prune, test.index, err)
			continue
		}
		prune := c.Resources[0].EffectivePrune()
		if got := len(prune.Presets)+len(prune.Remove) == 0; got != test.want {
			t.Errorf("%s and %s: EffectivePrune = %+v, want empty: %v", test.prune, test.index, prune,
				test.want)
		}
		if got := len(c.Warnings) > 0 && c.Warnings[len(c.Warnings)-1].Code == "W001"; got != test.want {
			t.Errorf("%s and %s: warnings = %v, want W001: %v", test.prune, test.index, c.Warnings, test.want)
		}
	}
}

// TestKeptFields verifies that the effective keep has the fields that indexes, conditions and references
// read.
func TestKeptFields(t *testing.T) {
	for body, want := range map[string]string{
		"keep: {paths: []}":                                                                       `[]`,
		"keep: {paths: [.spec.a, '.status.b[*].c']}":                                              `[".spec.a" ".status.b[*].c"]`,
		"keep: {paths: [.spec.a]}, indexes: [{name: i, path: '.spec.b[0].c'}]":                    `[".spec.a" ".spec.b[*].c"]`,
		"keep: {paths: []}, indexes: [{name: i, path: '.s.c[?(@.type==\"Ready\")].status'}]":      `[".s.c[*].status" ".s.c[*].type"]`,
		"keep: {paths: []}, indexes: [{name: i, path: '.spec.b[*]'}]":                             `[".spec.b"]`,
		"keep: {paths: []}, indexes: [{name: i, path: .spec..b}]":                                 `[".spec"]`,
		"keep: {paths: []}, indexes: [{name: i, path: .spec.b, when: '@.spec.c == 1'}]":           `[".spec.b" ".spec.c"]`,
		"keep: {paths: []}, references: [{name: r, to: {group: g, kind: K, namePath: .spec.d}}]":  `[".metadata.namespace" ".spec.d"]`,
		"keep: {paths: []}, indexes: [{name: i, each: '.spec.a[*]', key: [{name: k, path: .x}]}]": `[".spec.a[*].x"]`,
		"prune: {presets: [ManagedFields]}, indexes: [{name: i, path: .spec.b}]":                  `[]`,
	} {
		text := strings.Replace(configWith("  - {name: w, match: {group: example.com, kind: Widget}, "+body+"}\n"),
			"NAME", "n", 1)
		c, err := indexers.Parse(indexers.Source{Name: "w.yaml", Data: []byte(text)})
		if err != nil {
			t.Errorf("Parse with %s: %v", body, err)
			continue
		}
		kept := c.Resources[0].EffectiveKeep().Paths
		if got := fmt.Sprintf("%q", kept); got != want || (kept == nil) != strings.HasPrefix(body, "prune") {
			t.Errorf("%s: EffectiveKeep has the paths %s, want %s", body, got, want)
		}
	}
}

// TestKeepWhole verifies that EffectiveKeep has the conditions under which objects are kept whole.
func TestKeepWhole(t *testing.T) {
	text := strings.Replace(configWith("  - {name: w, match: {group: example.com, kind: Widget}, keep: {paths: [.spec.a], "+
		"whole: {labels: 'a in (b,c)', when: '@.spec.mine == true'}}}\n"), "NAME", "n", 1)
	c, err := indexers.Parse(indexers.Source{Name: "w.yaml", Data: []byte(text)})
	noError(t, err)
	r := c.Resources[0]
	want := indexers.Keep{Paths: []string{".spec.a"}, WholeLabels: "a in (b,c)", WholeWhen: "@.spec.mine == true"}
	if diff := cmp.Diff(want, r.EffectiveKeep()); diff != "" {
		t.Errorf("EffectiveKeep (-want +got):\n%s", diff)
	}
}

// TestKeepReplacesPrune verifies that a resource's keep replaces a default prune, and the reverse.
func TestKeepReplacesPrune(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		keep, prune := "keep: {paths: [.spec]}", "prune: {presets: [ManagedFields]}"
		resource, defaults := keep, prune
		if !keeps {
			resource, defaults = prune, keep
		}
		text := strings.Replace(configWith("  - {name: w, match: {group: example.com, kind: Widget}, "+resource+"}\n"),
			"NAME", "n", 1)
		text = strings.Replace(text, "  resources:", "  defaults: {"+defaults+"}\n  resources:", 1)
		c, err := indexers.Parse(indexers.Source{Name: "w.yaml", Data: []byte(text)})
		noError(t, err)
		r := c.Resources[0]
		if (r.Keep.Paths != nil) != keeps || (r.Prune.Presets != nil) == keeps {
			t.Errorf("%s with the default %s: Keep = %+v, Prune = %+v, want only the first", resource,
				defaults,
				r.Keep, r.Prune)
		}
	}
}

var rewrite = flag.Bool("rewrite", false, "write the current results into the golden files")

// definitions reads the CRDs in the project's test data.
func definitions(t testing.TB) []*crd.Definition {
	t.Helper()
	files, err := filepath.Glob("../testdata/crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var out []*crd.Definition
	for _, f := range files {
		d, err := crd.ReadFile(f)
		noError(t, err)
		out = append(out, d...)
	}
	return out
}

// runGoldenCases compares the result of run for each config of a folder with the config's golden file.
func runGoldenCases(t *testing.T, folder string, least int,
	run func(t *testing.T, s indexers.Source) (got string),
) {
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || len(files) < least {
		t.Fatalf("testdata/%s has %d configs, want at least %d: %v", folder, len(files), least, err)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			noError(t, err)
			got := run(t, indexers.Source{Name: name + ".yaml", Data: data})
			golden := strings.TrimSuffix(path, ".yaml") + ".golden"
			if *rewrite {
				noError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			noError(t, err)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("result (-golden +got):\n%s", diff)
			}
		})
	}
}

// describeFindings formats an error after checking its diagnostics.
func describeFindings(t *testing.T, err error, s indexers.Source) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var ce *indexers.ConfigError
	if !errors.As(err, &ce) || len(ce.Diagnostics) == 0 {
		t.Fatalf("got an error %T, want a *ConfigError with diagnostics", err)
	}
	for _, d := range ce.Diagnostics {
		checkDiagnostic(t, d, s)
		if !strings.HasPrefix(string(d.Code), "E") {
			t.Errorf("the error %s has the code %s, want one that begins with E", d, d.Code)
		}
	}
	return err.Error() + "\n"
}

func TestBrokenConfigs(t *testing.T) {
	runGoldenCases(t, "broken", 60, func(t *testing.T, s indexers.Source) string {
		c, err := indexers.Parse(s)
		if err == nil || c != nil {
			t.Fatalf("Parse = %v, %v; want only an error", c, err)
		}
		return describeFindings(t, err, s)
	})
}

func TestSchemaChecks(t *testing.T) {
	crds := definitions(t)
	runGoldenCases(t, "schema", 25, func(t *testing.T, s indexers.Source) string {
		c, err := indexers.Parse(s)
		noError(t, err)
		warnings, err := c.Check(crds)
		got := describeFindings(t, err, s)
		for _, w := range warnings {
			checkDiagnostic(t, w, s)
			got += w.Text() + "\n"
		}
		if got == "" {
			t.Error("Check found nothing, want an error or a warning")
		}
		return got
	})
}
