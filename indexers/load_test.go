package indexers_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
)

// checkDiagnostic verifies that a finding is complete and that its position is in the source.
func checkDiagnostic(t testing.TB, d indexers.Diagnostic, s indexers.Source) {
	t.Helper()
	if d.File != s.Name || d.Message == "" || d.Hint == "" || d.Length < 1 {
		t.Errorf("got the finding %+v, want the file %s, a message, a hint and a length", d, s.Name)
	}
	if d.Line < 1 || d.Column < 1 || d.Column > utf8.RuneCountInString(d.Source)+1 {
		t.Errorf("the position of %+v is outside of its line %q", d, d.Source)
	}
	if !strings.Contains(string(s.Data), d.Source) {
		t.Errorf("the source line of %+v is not in the file", d)
	}
	breaks := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029",
		"\n").Replace(string(s.Data))
	if d.Line > strings.Count(breaks, "\n")+1 {
		t.Errorf("the line number of %+v is after the end of the file", d)
	}
}

// configWith returns a config with the name NAME and these resources. It moves the limits of their indexes to
// the defaults.
func configWith(resources string) string {
	limits := ""
	resources = indexLimit.ReplaceAllStringFunc(resources, func(text string) string {
		limits += ", " + strings.TrimPrefix(text, ", ")
		return ""
	})
	if limits != "" {
		limits = "  defaults: {index: {" + limits[2:] + "}}\n"
	}
	return "apiVersion: crdcache.dev/v1beta1\nkind: IndexConfig\nmetadata: {name: NAME}\nspec:\n" + limits + "  resources:\n" + resources
}

var indexLimit = regexp.MustCompile(`, (maxValues|maxValueBytes): \d+`)

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	good, large := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "large.yaml")
	for path, text := range map[string]string{
		good:  configWith("  - name: w\n    match: {group: '', version: v1, kind: Pod}\n    indexes: [{name: a, path: .a}]\n"),
		large: strings.Repeat("#", 5<<20),
	} {
		noError(t, os.WriteFile(path, []byte(strings.Replace(text, "NAME", "n", 1)), 0o600))
	}
	c, err := indexers.Load(good)
	noError(t, err)
	if m := c.Resources[0].Match; m != (indexers.Match{Version: "v1", Kind: "Pod"}) {
		t.Errorf("Match = %+v, want version v1 and kind Pod", m)
	}
	_, err = indexers.Load(filepath.Join(dir, "none.yaml"), large, dir, good)
	var ce *indexers.ConfigError
	if !errors.As(err, &ce) || len(ce.Diagnostics) != 3 {
		t.Fatalf("Load of three unreadable files: got the error %v, want a *ConfigError with 3 findings", err)
	}
	for _, d := range ce.Diagnostics {
		if d.Code != "E017" || d.Hint == "" {
			t.Errorf("got the finding %s with the hint %q, want E017 with a hint", d, d.Hint)
		}
	}
}

// TestNoSchema verifies that Check warns about a CRD without a schema and rejects a version that is not
// served.
func TestNoSchema(t *testing.T) {
	text := configWith("  - name: w\n    match: {group: example.com, kind: Widget}\n    indexes: [{name: a, path: .a}]\n")
	s := indexers.Source{Name: "w.yaml", Data: []byte(strings.Replace(text, "NAME", "n", 1))}
	c, err := indexers.Parse(s)
	noError(t, err)
	d := &crd.Definition{Group: "example.com", Names: crd.Names{Plural: "widgets", Kind: "Widget"},
		Versions: []crd.Version{{Name: "v1", Served: true}}}
	warnings, err := c.Check([]*crd.Definition{d})
	if err != nil || len(warnings) != 1 || warnings[0].Code != "W302" {
		t.Errorf("Check without a schema = %v, %v; want only the warning W302", warnings, err)
	}
	d.Versions[0].Served = false
	_, err = c.Check([]*crd.Definition{d})
	if err == nil || !strings.Contains(err.Error(), "E305") {
		t.Errorf("Check of a version that is not served: got the error %v, want E305", err)
	}
}

const completeConfig = `apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: platform}
spec:
  defaults:
    storage: {mode: Packed}
    prune: {presets: [ManagedFields]}
    index: {maxValues: 64, maxValueBytes: 1024}
  resources:
  - name: certs
    match: {group: cert-manager.io, version: v1, resource: certificates}
    storage: {mode: Compressed}
    namespaces: {include: [prod, "team-*"], exclude: [team-sandbox]}
    selectors: {labels: "app.kubernetes.io/part-of=edge", fields: ""}
    prune: {remove: [".status.conditions[*].message", '.metadata.annotations["example.io/b.c"]']}
    indexes:
    - {name: issuer, path: .spec.issuerRef.name}
    - {name: dns, path: ".spec.dnsNames[*]", transform: [Lower, Trim]}
    - name: expiry
      path: .status.notAfter
      type: Time
      order: Sorted
      default: "9999-12-31T00:00:00Z"
    - name: condition
      each: ".status.conditions[*]"
      key: [{name: type, path: .type}, {name: status, path: .status}]
    - name: issuerPerNs
      key: [{name: ns, path: .metadata.namespace}, {name: issuer, path: .spec.issuerRef.name}]
    - name: notReady
      path: .metadata.name
      when: '!(@.status.conditions[?(@.type=="Ready" && @.status=="True")])'
    - {name: team, label: example.io/team}
    - {name: url, path: .spec.url, regex: {match: '^https?://([^/]+)', group: 1}}
  - name: widgets
    match: {group: example.com, kind: Widget}
  - name: crossplane
    match: {group: "*.crossplane.io", resource: "*"}
    optional: true
    storage: {mode: Metadata}
    prune: {presets: []}
`

func TestCompleteConfig(t *testing.T) {
	c, err := indexers.Parse(indexers.Source{Name: "c.yaml", Data: []byte(completeConfig)})
	noError(t, err)
	certs, widgets, crossplane := c.Resources[0], c.Resources[1], c.Resources[2]
	type resourceOptions struct {
		Storage    indexers.Storage
		Presets    []string
		Remove     []string
		Namespaces indexers.Namespaces
		Selectors  indexers.Selectors
		Indexes    int
	}
	optionsOf := func(r *indexers.Resource) resourceOptions {
		return resourceOptions{r.Storage, r.Prune.Presets, r.Prune.Remove, r.Namespaces, r.Selectors,
			len(r.Indexes)}
	}
	want := []resourceOptions{
		{
			indexers.Storage{Mode: "Compressed"}, []string{"ManagedFields"},
			[]string{".status.conditions[*].message", `.metadata.annotations["example.io/b.c"]`},
			indexers.Namespaces{Include: []string{"prod", "team-*"}, Exclude: []string{"team-sandbox"}},
			indexers.Selectors{Labels: "app.kubernetes.io/part-of=edge"}, 8,
		},
		{indexers.Storage{Mode: "Packed"}, []string{"ManagedFields"}, nil, indexers.Namespaces{},
			indexers.Selectors{}, 0},
		{indexers.Storage{Mode: "Metadata"}, nil, nil, indexers.Namespaces{}, indexers.Selectors{}, 0},
	}
	got := []resourceOptions{optionsOf(certs), optionsOf(widgets), optionsOf(crossplane)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("options of the resources (-want +got):\n%s", diff)
	}
	if m := crossplane.Match; !m.Pattern() || !m.Matches("iam.aws.crossplane.io",
		"roles", "Role") || m.Matches("crossplane.io", "roles", "Role") {
		t.Errorf("Match of crossplane = %+v, want a pattern that matches only subdomains of crossplane.io", m)
	}
	if m := widgets.Match; m.Pattern() || !m.Matches("example.com", "widgets", "Widget") ||
		m.Matches("example.com", "widgets", "Gadget") {
		t.Errorf("Match of widgets = %+v, want no pattern and only the kind Widget", m)
	}
	expiry, ok := certs.Index("expiry")
	if !ok || !expiry.Sorted || !expiry.Single() || cmp.Diff([]string{"Time"}, expiry.Types()) != "" {
		t.Errorf(`Index("expiry") = %+v, want a sorted index of one time`, expiry)
	}
	if url, ok := certs.Index("url"); !ok || url.Sorted {
		t.Errorf(`Index("url") = %+v, want an index that is not sorted`, url)
	}
	if dns, ok := certs.Index("dns"); !ok || dns.Single() || dns.Composite() {
		t.Errorf(`Index("dns") = %+v, want several values and no composite`, dns)
	}
}

func TestNamespacePatterns(t *testing.T) {
	for _, test := range []struct {
		reason           string
		include, exclude []string
		namespace        string
		want             bool
	}{
		{"no limit", nil, nil, "any", true},
		{"by name", []string{"prod"}, nil, "prod", true},
		{"another name", []string{"prod"}, nil, "prod-eu", false},
		{"by pattern", []string{"prod", "team-*"}, nil, "team-", true},
		{"in the middle", []string{"a*b*c"}, nil, "a-b-b-c", true},
		{"not in the middle", []string{"a*b*c"}, nil, "acb", false},
		{"parts do not overlap", []string{"ab*ba"}, nil, "aba", false},
		{"excluded", []string{"team-*"}, []string{"team-sandbox"}, "team-sandbox", false},
		{"all but", nil, []string{"kube-*"}, "kube-system", false},
		{"not excluded", nil, []string{"kube-*"}, "default", true},
	} {
		n := indexers.Namespaces{Include: test.include, Exclude: test.exclude}
		if got := n.Matches(test.namespace); got != test.want {
			t.Errorf("%s: Matches(%q) = %v, want %v", test.reason, test.namespace, got, test.want)
		}
		if n.All() != (test.include == nil && test.exclude == nil) {
			t.Errorf("%s: All() = %v, want %v", test.reason, n.All(), !n.All())
		}
	}
}

// TestPositionsWithOtherLineEndings verifies that positions do not depend on line endings or a byte order
// mark.
func TestPositionsWithOtherLineEndings(t *testing.T) {
	text := strings.Replace(
		configWith(
			"  - name: w\n    match: {group: example.com, kind: Widget}\n    indexes:\n    - {name: ä, path: '.a['}\n"), "NAME", "n", 1)
	want := "w.yaml:9:14: E015 w.yaml:9:26: E102 "
	for reason, data := range map[string]string{
		"LF": text, "CRLF": strings.ReplaceAll(text, "\n", "\r\n"), "CR": strings.ReplaceAll(text,
			"\n", "\r"),
		"byte order mark": "\ufeff" + text, "Unicode": strings.ReplaceAll(text, "\n", "\u2028"),
	} {
		s := indexers.Source{Name: "w.yaml", Data: []byte(data)}
		_, err := indexers.Parse(s)
		var ce *indexers.ConfigError
		if !errors.As(err, &ce) {
			t.Errorf("%s: Parse: got the error %v, want a *ConfigError", reason, err)
			continue
		}
		got := ""
		for _, d := range ce.Diagnostics {
			checkDiagnostic(t, d, s)
			got += strings.Join(strings.SplitAfterN(d.String(), ": ", 3)[:1], "") + string(d.Code) + " "
		}
		if got != want {
			t.Errorf("%s: findings = %q, want %q", reason, got, want)
		}
	}
}

// TestNullIsUnset verifies that null is like a field that is not written.
func TestNullIsUnset(t *testing.T) {
	const resource = "  - name: w\n    match: {group: a.b, kind: W%s}\n    indexes: [{name: i, path: .spec.a%s}]\n%s"
	read := func(more ...any) *indexers.Config {
		t.Helper()
		text := strings.Replace(configWith(fmt.Sprintf(resource, more...)), "NAME", "n", 1)
		c, err := indexers.Parse(indexers.Source{Name: "n.yaml", Data: []byte(text)})
		noError(t, err)
		return c
	}
	got := read(", version: null, resource: ~", ", each: null, paths: , missing: null, default: ~, when: null, type: null, transform: null, key: null",
		"    storage: null\n    keep:\n    prune: {presets: null}\n    namespaces: null\n    references: null\n    metrics:\n")
	c := indexers.DiffResources(read("", "", "").Resources[0], got.Resources[0])
	if !reflect.DeepEqual(c, indexers.Change{}) {
		t.Errorf("the difference to a resource without nulls is %+v, want none", c)
	}
}

func TestFilesAreMerged(t *testing.T) {
	text := func(config, resource string) []byte {
		return []byte(strings.Replace(configWith("  - name: "+resource+
			"\n    match: {group: example.com, kind: Widget}\n    indexes: [{name: a, path: .a}]\n"),
			"NAME", config, 1))
	}
	c, err := indexers.Parse(
		indexers.Source{Name: "a.yaml", Data: append(append(text("one", "x"), "---\n"...),
			text("two", "y")...)},
		indexers.Source{Name: "b.yaml", Data: append([]byte("\ufeff"), text("three", "z")...)},
	)
	noError(t, err)
	got := ""
	for _, r := range c.Resources {
		got += r.Config + "/" + r.Name + " "
	}
	if want := "one/x two/y three/z "; got != want {
		t.Errorf("resources of the merged files = %q, want %q", got, want)
	}
	if _, ok := c.Resource("y"); !ok {
		t.Error(`Resource("y") found nothing`)
	}
	if r, ok := c.Resource("n"); ok {
		t.Errorf(`Resource("n") = %v, want nothing`, r)
	}

	_, err = indexers.Parse(
		indexers.Source{Name: "a.yaml", Data: text("one", "x")},
		indexers.Source{Name: "b.yaml", Data: text("two", "x")},
	)
	want := "b.yaml:6:11: E007: resource \"x\" is already defined at a.yaml:6:11; choose another name for one of them\n    - name: x\n            ^"
	if err == nil || err.Error() != want {
		t.Errorf("Parse of two resources x: got the error\n%v\nwant\n%s", err, want)
	}
}

// TestJSONAsToolsWriteIt verifies that surrogate pairs in JSON are decoded to characters, and that the labels
// and annotations that tools add are accepted.
func TestJSONAsToolsWriteIt(t *testing.T) {
	text := `{"apiVersion": "crdcache.dev/v1beta1", "kind": "IndexConfig", "metadata": {"name": "n", "namespace": "m", "labels": {"app": "x"}, "annotations": {"a\u00e9": "\uD83D\uDE00"}},
		"spec": {"resources": [{"name": "w", "match": {"group": "example.com", "kind": "Widget"}, "indexes": [
		{"name": "a", "path": ".a", "default": "\ud83d\ude00 \\ud83d\\ude00 \\\ud83d\ude00"}]}]}}`
	c, err := indexers.Parse(indexers.Source{Name: "j.json", Data: []byte(text)})
	noError(t, err)
	want := "\U0001f600 \\ud83d\\ude00 \\\U0001f600"
	if got := indexers.Compile(c.Resources[0]).Keys(map[string]any{})[0]; len(got) != 1 || got[0] != want {
		t.Errorf("keys = %q, want %q", got, want)
	}
}

// FuzzParse checks that no input panics and that all findings are inside the file.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*/*.yaml", "../testdata/indexes/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatal(pattern, err)
		}
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("? {a: b}\n: c"))
	f.Add([]byte("a:\u2028b: \u0085\r\n- \"\\"))
	f.Add([]byte("%YAML 1.1\n--- !!map {? a : b}\n...\n--- x"))
	crds := definitions(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := indexers.Source{Name: "f.yaml", Data: data}
		c, err := indexers.Parse(s)
		if (c == nil) == (err == nil) {
			t.Fatalf("Parse = %v, %v; want either a config or an error", c, err)
		}
		var diagnostics []indexers.Diagnostic
		var configErr *indexers.ConfigError
		if errors.As(err, &configErr) {
			diagnostics = configErr.Diagnostics
		}
		known := func([]string) ([]*crd.Definition, error) { return crds, nil }
		_, checkErr := indexers.CheckSources(indexers.CheckOptions{Definitions: known}, s)
		if err != nil && (!errors.As(checkErr, &configErr) || len(configErr.Diagnostics) < len(diagnostics)) {
			t.Fatalf("CheckSources: got the error %v, want at least the findings of Parse: %v", checkErr, err)
		}
		if c != nil {
			warnings, err := c.Check(crds)
			diagnostics = append(append(diagnostics, c.Warnings...), warnings...)
			if errors.As(err, &configErr) {
				diagnostics = append(diagnostics, configErr.Diagnostics...)
			}
			for _, r := range c.Resources {
				for _, fn := range indexers.Compile(r).Indexers() {
					if _, err := fn(map[string]any{"metadata": map[string]any{"name": "x"}}); err != nil {
						t.Error(err)
					}
				}
			}
		}
		for _, d := range diagnostics {
			checkDiagnostic(t, d, s)
			if !strings.HasPrefix(d.Text(), d.String()) {
				t.Errorf("Text = %q, want the prefix %q", d.Text(), d.String())
			}
		}
	})
}
