package cel

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/expression"
)

const lamp = `{"apiVersion": "example.com/v1", "kind": "Lamp",
	"metadata": {"name": "lamp", "namespace": "hall"},
	"spec": {"class": "gold", "watts": 3, "ratio": 1, "paused": false, "note": null, "a-b": "dash",
		"rooms": [{"name": "a", "size": 1}, {"name": "b"}], "colors": {"high": "white", "low": "red"},
		"memory": "1Gi", "port": "http"},
	"status": {"conditions": [{"type": "Ready", "status": "False"}]}}`

func compileText(t testing.TB, text string) expression.Expression {
	t.Helper()
	e, err := compile(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return e
}

// configOf parses a config with one resource.
func configOf(resource string) (*indexers.Config, error) {
	return indexers.Parse(sourceOf(resource))
}

func sourceOf(resource string) indexers.Source {
	const head = "apiVersion: crdcache.dev/v1beta1\nkind: IndexConfig\nmetadata: {name: c}\n" +
		"spec:\n  resources:\n  - name: lamps\n    match: {group: example.com, kind: Lamp}\n"
	return indexers.Source{Name: "c.yaml", Data: []byte(head + resource)}
}

func decode(t testing.TB, text string) (object map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &object); err != nil { // of apimachinery: integers are int64
		t.Fatal(err)
	}
	return object
}

// TestIndexes verifies the values and counters of indexes, which are equal for JSON and for decoded objects.
func TestIndexes(t *testing.T) {
	for _, test := range []struct {
		index string
		want  []string
		count func(indexers.Stats) uint64 // returns the counter that is 1
	}{
		{`cel: self.spec.class`, []string{"gold"}, nil},
		{`cel: self.spec.class + '/' + self.metadata.name`, []string{"gold/lamp"}, nil},
		{`cel: 'self.spec.rooms.map(r, r.name)'`, []string{"a", "b"}, nil},
		{`cel: 'self.spec.watts * 2', type: Int`, []string{"6"}, nil},
		{`cel: self.spec.watts / 2.0 > 1.0`, nil, func(s indexers.Stats) uint64 { return s.Failed }},
		{`cel: double(self.spec.watts) / 2.0`, []string{"1.5"}, nil},
		{`cel: '!self.spec.paused'`, []string{"true"}, nil},
		{"cel: self.spec.`a-b`", []string{"dash"}, nil},
		{`cel: self.spec.note`, nil, func(s indexers.Stats) uint64 { return s.SkippedMissing }},
		{`cel: self.spec.other`, nil, func(s indexers.Stats) uint64 { return s.SkippedMissing }},
		{`cel: 'self.spec.?other', default: none`, []string{"none"}, nil},
		{`cel: 'self.spec.?other.orValue("x")'`, []string{"x"}, nil},
		{`cel: self.spec.colors`, nil, func(s indexers.Stats) uint64 { return s.SkippedType }},
		{`cel: self.spec.class, transform: [Upper]`, []string{"GOLD"}, nil},
		{`cel: self.spec.class, whenCEL: self.spec.watts > 2`, []string{"gold"}, nil},
		{`cel: self.spec.class, whenCEL: self.spec.watts > 3`, nil,
			func(s indexers.Stats) uint64 { return s.SkippedWhen }},
		{`path: .spec.class, whenCEL: self.spec.other > 3`, nil,
			func(s indexers.Stats) uint64 { return s.Failed }},
		{`path: .spec.class, whenCEL: "quantity(self.spec.memory).isGreaterThan(quantity('1Mi'))"`,
			[]string{"gold"}, nil},
		{`key: [{name: a, path: .spec.class}, {name: b, cel: 'self.spec.rooms.map(r, r.name)'}]`,
			[]string{"gold/a", "gold/b"}, nil},
		{`each: '.spec.rooms[*]', key: [{name: a, path: .name}, {name: b, cel: 'string(self.spec.watts)'}]`,
			[]string{"a/3", "b/3"}, nil},
	} {
		t.Run(test.index, func(t *testing.T) {
			config, err := configOf("    indexes:\n    - {name: i, " + test.index + "}\n")
			must(t, err)
			object := decode(t, lamp)
			for form, keys := range map[string]func(*indexers.Functions) []string{
				"decoded": func(f *indexers.Functions) []string { return f.Keys(object)[0] },
				"JSON":    func(f *indexers.Functions) []string { return f.KeysJSON([]byte(lamp), nil)[0] },
			} {
				functions := indexers.Compile(config.Resources[0])
				if diff := cmp.Diff(test.want, keys(functions)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", form, diff)
				}
				stats := functions.Stats()[0]
				if test.count != nil && test.count(stats) != 1 {
					t.Errorf("%s: Stats = %s, want 1 in the counter of the test", form, stats)
				}
				if failed := stats.Failed > 0; failed != (functions.Dropped("i") > 0) ||
					failed && functions.Skipped("i") != 1 ||
					failed && !slices.Equal(stats.Reported, []string{"hall/lamp"}) {
					t.Errorf("%s: Stats = %s, Dropped = %d, Reported = %q, want the object if it failed",
						form, stats, functions.Dropped("i"), stats.Reported)
				}
			}
		})
	}
}

// TestFindings verifies the positions and remedies of errors in a config, without and with a schema.
func TestFindings(t *testing.T) {
	definitions, err := crd.ReadFile("testdata/lamps.yaml")
	must(t, err)
	data, err := os.ReadFile("testdata/findings.golden")
	must(t, err)
	var got strings.Builder
	for line := range strings.Lines(string(data)) {
		expr, ok := strings.CutPrefix(line, "= ")
		if !ok {
			continue
		}
		index := "{name: i, " + strings.TrimSpace(expr) + "}"
		if block, ok := strings.CutPrefix(expr, "block "); ok { // ~ is a line break
			index = "name: i\n      cel: |-\n        " +
				strings.ReplaceAll(strings.TrimSpace(block), "~", "\n        ")
		}
		source := sourceOf("    indexes:\n    - " + index + "\n")
		got.WriteString(line)
		known := func([]string) ([]*crd.Definition, error) { return definitions, nil }
		_, err := indexers.CheckSources(indexers.CheckOptions{Definitions: known}, source)
		if err != nil {
			got.WriteString(strings.ReplaceAll(err.Error(), "c.yaml:", "") + "\n")
		}
	}
	if os.Getenv("REWRITE") != "" {
		must(t, os.WriteFile("testdata/findings.golden", []byte(got.String()), 0o644))
		return
	}
	if diff := cmp.Diff(string(data), got.String()); diff != "" {
		t.Errorf("findings (-golden +got):\n%s", diff)
	}
}

// TestKeep verifies that objects keep the fields that expressions read.
func TestKeep(t *testing.T) {
	for expr, want := range map[string][]string{
		"self.spec.class + self.spec.?other.orValue('')":           {".spec.class", ".spec.other"},
		"has(self.spec.class) ? 'a' : 'b'":                         {".spec.class"},
		"self.spec['class']":                                       {".spec.class"},
		"self.spec[?'class']":                                      {".spec.class"},
		"self.spec.rooms.map(r, r.name)":                           {".spec.rooms[*].name"},
		"self.spec.rooms[0].name":                                  {".spec.rooms[*].name"},
		"self.spec.rooms.filter(r, r.size > 1).map(r, r.name)":     {".spec.rooms", ".spec.rooms[*].size"},
		"self.spec.rooms.exists(r, true)":                          {".spec.rooms"},
		"self.spec.rooms.exists(r, self.spec.roomsMax == 1)":       {".spec.rooms", ".spec.roomsMax"},
		"self.spec.colors.exists(k, self.spec.colors[k] == 'x')":   {".spec.colors"},
		"self.spec.colors.exists(k, k == 'x')":                     {".spec.colors"},
		"self.spec.colors.transformList(k, v, v)":                  {".spec.colors"},
		"self.spec.colors[self.spec.class]":                        {".spec.class", ".spec.colors"},
		"self.spec.rooms.all(r, self.status.list.all(r, r.x > 1))": {".spec.rooms", ".status.list[*].x"},
		"[self.spec.a, {'k': self.spec.b}['k']]":                   {".spec.a", ".spec.b"},
		"self.spec.?a.optMap(x, x.b).orValue('')":                  {".spec.a"},
	} {
		config, err := configOf("    keep: {paths: []}\n    indexes:\n    - name: i\n" +
			"      cel: |-\n        " + expr + "\n")
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if diff := cmp.Diff(want, config.Resources[0].EffectiveKeep().Paths); diff != "" {
			t.Errorf("EffectiveKeep with %s (-want +got):\n%s", expr, diff)
		}
	}
	for _, expr := range []string{"dyn(self) == 1", "self[self.kind]"} {
		_, err := configOf("    keep: {paths: []}\n    indexes:\n    - {name: i, cel: '" + expr + "'}\n")
		if err == nil || !strings.Contains(err.Error(), "can read any field, but keep drops fields") {
			t.Errorf("%s: %v", expr, err)
		}
	}
}

// TestHostileExpressions verifies that costly expressions end with an error, and that too large ones do not
// compile.
func TestHostileExpressions(t *testing.T) {
	names := make([]any, 2000)
	for i := range names {
		names[i] = strings.Repeat("a", 100)
	}
	object := map[string]any{"names": names, "text": strings.Repeat("a", 1<<20), "deep": nestedLists(9000)}
	for _, expr := range []string{
		"self.names.all(a, self.names.all(b, self.names.all(c, a == b || b == c)))",
		"[1,2,3,4,5,6,7,8].all(a, self.names.map(b, self.names.map(c, c + b)).size() > a)",
		"self.names.all(n, self.text.contains(n + 'b') || true)",
		"self.names.map(n, self.text.replace('a', n)).size() > 0",
	} {
		if result, err := compileText(t, expr).Eval(context.Background(), object); err == nil ||
			!strings.Contains(err.Error(), "cost limit exceeded") {
			t.Errorf("Eval of %s = %v, %v; want an error about the cost limit", expr, result, err)
		}
	}
	for _, expr := range []string{
		strings.Repeat("(", 5000) + "self" + strings.Repeat(")", 5000),
		"self" + strings.Repeat(".a", 10000), "'" + strings.Repeat("a", 20000) + "'",
		"self.a.matches('a{1000}{1000}')",
		strings.Repeat("[", 3000) + strings.Repeat("]", 3000), strings.Repeat("self.a.all(x, ", 1000),
		"\xff", "",
	} {
		if _, err := expression.Compile(expr); err == nil {
			t.Errorf("Compile(%.40q) succeeded, want an error", expr)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := compileText(t, "self.names.all(n, n == n)").Eval(ctx, object)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := compileText(t, "self.deep == self.deep").Eval(context.Background(), object); err != nil {
		t.Error(err)
	}
}

// nestedLists returns n lists, each in the next one.
func nestedLists(n int) any {
	var value any = "x"
	for range n {
		value = []any{value}
	}
	return value
}

func BenchmarkIndex(b *testing.B) {
	for name, index := range map[string]string{
		"path": "{name: i, path: '.spec.rooms[*].name', when: '@.spec.watts > 2'}",
		"cel":  "{name: i, cel: 'self.spec.rooms.map(r, r.name)', whenCEL: self.spec.watts > 2}",
	} {
		b.Run(name, func(b *testing.B) {
			config, err := configOf("    indexes:\n    - " + index + "\n")
			if err != nil {
				b.Fatal(err)
			}
			functions, keys := indexers.Compile(config.Resources[0]), [][]string{nil}
			for b.Loop() {
				keys[0] = keys[0][:0]
				keys = functions.KeysJSON([]byte(lamp), keys)
			}
		})
	}
}
