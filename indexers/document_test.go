package indexers_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/indexers"
)

// compileAll compiles several indexes of a config.
func compileAll(t testing.TB, list ...string) *indexers.Functions {
	t.Helper()
	text := configWith("  - name: w\n    match: {group: example.com, kind: Widget}\n    indexes:\n    - " +
		strings.Join(list, "\n    - ") + "\n")
	c, err := indexers.Parse(indexers.Source{Name: "w.yaml",
		Data: []byte(strings.Replace(text, "NAME", "n", 1))})
	noError(t, err)
	return indexers.Compile(c.Resources[0])
}

var manyIndexes = []string{
	"{name: named, path: .metadata.name, order: Sorted}",
	"{name: label, label: example.com/team, missing: AsNull}",
	"{name: list, path: '.spec.a[*]', transform: [Trim, Lower]}",
	"{name: int, path: '.spec.a[*]', type: Int, order: Sorted}",
	"{name: quantity, path: '.spec.*', type: Quantity}",
	"{name: time, path: .spec.t, type: Time, order: Sorted, default: '9999-12-31T00:00:00Z'}",
	"{name: each, each: '.spec.list[*]', key: [{name: x, path: .x}, {name: y, path: '.y[*]', missing: AsNull}]}",
	"{name: paths, paths: [.spec.s, '.spec.a[*]', .spec.n], missing: AsNull}",
	"{name: reach, each: '.spec.list[*]', key: [{name: x, paths: [.x, '$.spec.t', $.metadata.namespace]}, {name: y, paths: ['.y[*]', '$.spec.a[*]']}]}",
	"{name: inner, each: '.spec.a[*]', key: [{name: x, path: '@'}]}",
	"{name: pair, order: Sorted, key: [{name: ns, path: .metadata.namespace}, {name: n, path: .spec.n, type: Number}]}",
	"{name: some, path: .metadata.name, when: '@.spec.n > 1'}",
	"{name: owner, each: '.metadata.ownerReferences[?(@.controller==true)]', key: [{name: kind, path: .kind}, {name: name, path: .name}]}",
	"{name: any, path: '..x', missing: Report}",
	"{name: regex, path: .spec.s, regex: {match: '^([a-z]+)-', group: 1}}",
	"{name: filter, path: '.spec.list[?(@.x==1)].y[*]'}",
}

func randomObject(random *rand.Rand) map[string]any {
	scalar := func() any {
		return []any{nil, "", "a", "A ", "\x00", "10", "1Gi", int64(1), int64(2), 1.5, 2.0, true,
			"web-\u00e9<>&", "2026-01-02T00:00:00Z", m{}, []any{}}[random.IntN(16)]
	}
	list := func(of func() any) any {
		out := []any{}
		for range random.IntN(5) {
			out = append(out, of())
		}
		return out
	}
	setSometimes := func(into m, key string, v any) {
		if random.IntN(4) > 0 {
			into[key] = v
		}
	}
	metadata, specFields := m{"name": fmt.Sprint("w", random.IntN(1000))}, m{}
	setSometimes(metadata, "namespace", []string{"a", "a-b", "team-x"}[random.IntN(3)])
	setSometimes(metadata, "labels", m{"example.com/team": scalar(), "other": "x"})
	setSometimes(metadata, "ownerReferences",
		list(func() any { return m{"kind": "House", "name": scalar(), "controller": random.IntN(2) == 0} }))
	setSometimes(specFields, "a", list(scalar))
	setSometimes(specFields, "list", list(func() any {
		e := m{}
		setSometimes(e, "x", scalar())
		setSometimes(e, "y", list(scalar))
		return e
	}))
	for _, key := range []string{"n", "s", "t"} {
		setSometimes(specFields, key, scalar())
	}
	return m{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": specFields}
}

// TestDocumentsGiveTheSameKeys verifies that a document gives the same keys and statistics as the decoded
// object.
func TestDocumentsGiveTheSameKeys(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	decoded, encoded := compileAll(t, manyIndexes...), compileAll(t, manyIndexes...)
	for range 3000 {
		document, err := json.Marshal(randomObject(random))
		noError(t, err)
		compareKeys(t, decoded, encoded, document)
	}
	if diff := cmp.Diff(decoded.Stats(), encoded.Stats()); diff != "" {
		t.Errorf("stats (-decoded +document):\n%s", diff)
	}
	for _, s := range encoded.Stats() {
		if s.Matched == 0 || s.Matched == s.Seen && s.Index != "named" && s.Index != "label" &&
			s.Index != "time" {
			t.Errorf("the random objects do not exercise the index: %+v, want some that match and some not",
				s)
		}
	}
}

// compareKeys verifies that the keys of a document equal the keys of the decoded object.
func compareKeys(t *testing.T, decoded, encoded *indexers.Functions, document []byte) {
	t.Helper()
	var object map[string]any
	noError(t, kjson.Unmarshal(document, &object))
	want, got := decoded.Keys(object), encoded.KeysJSON(document, nil)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("keys of %s (-decoded +document):\n%s", document, diff)
	}
}

// TestBrokenDocuments verifies that invalid JSON is counted as failed.
func TestBrokenDocuments(t *testing.T) {
	f := compileAll(t, "{name: a, path: .a}", "{name: b, path: .b, missing: AsNull}")
	for _, text := range []string{"", "{", `{"a": "x"} {}`, `{"a": x}`} {
		for i, keys := range f.KeysJSON([]byte(text), nil) {
			if len(keys) > 0 {
				t.Errorf("KeysJSON(%q)[%d] = %q, want no keys", text, i, keys)
			}
		}
	}
	for _, s := range f.Stats() {
		if s.Seen != 4 || s.Failed != 4 {
			t.Errorf("Stats = %+v, want 4 seen and 4 failed", s)
		}
	}
}

// FuzzDocument checks that documents and decoded objects give the same keys.
func FuzzDocument(f *testing.F) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		document, err := json.Marshal(randomObject(random))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(document)
	}
	f.Add([]byte(`{"spec": {"a": [1, 1.0, 1e0, "\u0000", "\ud800"], "a": [9223372036854775808, -0]}}`))
	decoded, raw := compileAll(f, manyIndexes...), compileAll(f, manyIndexes...)
	f.Fuzz(func(t *testing.T, document []byte) {
		var object map[string]any
		if kjson.Unmarshal(document, &object) != nil || object == nil {
			raw.KeysJSON(document, nil)
			return
		}
		compareKeys(t, decoded, raw, document)
	})
}

// TestHostileFiles verifies that hostile files are rejected with short messages.
func TestHostileFiles(t *testing.T) {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := range byte(20) {
		last, next := string('a'+i), string('b'+i)
		bomb += next + "0: &" + next + "0 [" + strings.TrimSuffix(strings.Repeat("*"+last+"0,", 9),
			",") + "]\n"
	}
	config := strings.Replace(configWith("  - name: w\n    match: {group: e, kind: W}\n    indexes: "),
		"NAME", "n", 1)
	for reason, text := range map[string]string{
		"an alias bomb":         config + "*a0\n" + bomb,
		"nested lists":          config + strings.Repeat("[", 200000) + strings.Repeat("]", 200000),
		"nested maps":           config + strings.Repeat("{a: ", 9000) + "x" + strings.Repeat("}", 9000),
		"nested blocks":         strings.Repeat("- ", 9000) + "x",
		"an open list of lists": config + strings.Repeat("[", 9000),
		"one line with an error": config + "[" + strings.Repeat("{name: a, path: .a},", 20000) +
			"{name: a, path: [}]",
		"many lines, and an open quote": config + "\n" + strings.Repeat("    - {name: a, path: .a}\n",
			20000) +
			"    - {name: 'a",
		"only tabs":        strings.Repeat("\t", 1<<20),
		"only line breaks": strings.Repeat("\n", 1<<20) + "\t",
		"only zeros":       strings.Repeat("\x00", 1<<20),
	} {
		s := indexers.Source{Name: "f.yaml", Data: []byte(text)}
		c, err := indexers.Parse(s)
		if err == nil || c != nil {
			t.Errorf("Parse of %s = %v, %v; want only an error", reason, c, err)
			continue
		}
		if size := len(err.Error()); size > 10000 && reason != "one line with an error" {
			t.Errorf("Parse of %s: the error has %d bytes, want at most 10000", reason, size)
		}
	}
}

// TestCheckMetricSeries verifies the warnings about the cardinality of metrics.
func TestCheckMetricSeries(t *testing.T) {
	const name, class, since = "{name: name, path: .metadata.name}", "{name: class, path: .spec.class}",
		"{name: since, path: .spec.since}"
	tests := map[string]struct {
		metric         string
		objects, total int
		want           string
	}{
		"few values":         {"labels: [" + class + "]", 200, 90_000, ""},
		"no labels":          {"value: {path: .spec.n}", 200, 90_000, ""},
		"no objects":         {"labels: [" + name + "]", 0, 0, ""},
		"one object":         {"limit: 1, labels: [" + name + "]", 1, 0, ""},
		"a series an object": {"labels: [" + name + "]", 200, 9000, ""},
		"above the limit": {"labels: [" + name + "]", 200, 90_000,
			`metric "m" has about 90000 series for 90000 objects, more than its limit of 10000; label "name" has 200 values in 200 objects; use fewer labels, or raise limit`},
		"above the limit in the sample": {"limit: 2, index: class", 200, 0,
			`metric "m" has about 3 series for 200 objects, more than its limit of 2; label "class" has 3 values in 200 objects; use fewer labels, or raise limit`},
		"states": {"limit: 300, labels: [" + name + "], states: {name: s, path: .spec.class, values: [c0, c1]}", 200, 0,
			`metric "m" has about 400 series for 200 objects, more than its limit of 300; label "name" has 200 values in 200 objects; use fewer labels, or raise limit`},
		"an unbounded label": {"labels: [" + class + ", " + since + "]", 200, 0,
			`label "since" of metric "m" has 200 values in 200 objects; use a label with fewer values; for a series of each object, add its name as a label`},
		"too few objects to tell": {"labels: [" + since + "]", 99, 0, ""},
	}
	for reason, tt := range tests {
		t.Run(reason, func(t *testing.T) {
			var sample []*unstructured.Unstructured
			for n := range tt.objects {
				sample = append(sample, &unstructured.Unstructured{Object: map[string]any{
					"metadata": map[string]any{"name": fmt.Sprint("o", n)},
					"spec": map[string]any{"class": fmt.Sprint("c", n%3), "since": fmt.Sprint("t", n),
						"n": int64(n)},
				}})
			}
			got := ""
			for _, w := range metricResource(t, "    - {name: m, help: Help., "+tt.metric+"}").
				CheckMetricSeries(sample, tt.total) {
				got += w.Message + "; " + w.Hint
				if w.Code != "W312" || w.Column != 14 {
					t.Errorf("warning %v, want W312 at the name of the metric", w)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
