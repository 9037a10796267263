package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUnusualDocuments verifies the objects of valid documents with syntax that kubectl does not write.
func TestUnusualDocuments(t *testing.T) {
	const tail = "kind: List\n"
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"anchor in one item, alias in another": {
			"apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: A\n  metadata: &m {name: a}\n- apiVersion: v1\n  kind: B\n  metadata: *m\n" + tail,
			[]string{"3 1/1: v1 A a", "6 1/2: v1 B a"},
		},
		"anchor in the head, alias in an item": {
			"x: &m {name: a}\napiVersion: v1\nitems:\n- apiVersion: v1\n  kind: A\n  metadata: *m\n" + tail,
			[]string{"4 1/1: v1 A a"},
		},
		"anchor in an item, alias in the tail": {
			"apiVersion: v1\nitems:\n" + item(aYAML) +
				"- apiVersion: v1\n  kind: &k B\n  metadata: {name: b}\n" + tail +
				"metadata:\n  selfLink: *k\n",
			[]string{"3 1/1: v1 A a", "7 1/2: v1 B b"},
		},
		"text that looks like an anchor": {
			"apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: A\n  metadata: {name: \"R &D *x\"}\n" +
				item(bYAML) + tail,
			[]string{"3 1/1: v1 A R &D *x", "6 1/2: v1 B b"},
		},
		"a string that continues at the margin": {
			"apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: A\n  metadata: {name: a, x: \"b\n- c\n\nitems:\n\"}\n" + item(bYAML) + tail,
			[]string{"3 1/1: v1 A a", "10 1/2: v1 B b"},
		},
		"a string in the head that has items": {
			"apiVersion: v1\nx: \"\nitems:\n- a\n\"\nkind: A\nmetadata: {name: a}\n",
			[]string{"1 1/0: v1 A a"},
		},
		"brackets that go on at the margin": {
			"apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: A\n  metadata: {\nname: a,\nx: [\n1\n]}\n" +
				item(bYAML) + tail,
			[]string{"3 1/1: v1 A a", "10 1/2: v1 B b"},
		},
		"a key twice in an item": {
			"apiVersion: v1\nitems:\n- a: b\n  a: c\n" + item(bYAML) + tail,
			[]string{`4 1/0: error not valid YAML: key "a" already set in map`},
		},
		"other line breaks": {strings.ReplaceAll(aYAML, "\n", "\r"), []string{"1 1/0: v1 A a"}},
		"other line breaks, two documents": {strings.ReplaceAll(aYAML+"---\n"+bYAML, "\n", "\r"),
			[]string{"1 1/0: v1 A a", "6 2/0: v1 B b"}},
		"items of a kind that is no list": {
			"{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"a\"},\"items\":\"x\"}",
			[]string{"1 1/0: v1 A a"}},
		"json with the keys of others": {
			`{"apiVersion":"v1","kind":"A","Kind":"X","metadata":{"name":"a"},"Items":[1]}`,
			[]string{"1 1/0: v1 A a"}},
		"json with a key twice below": {
			"\n{\"apiVersion\":\"v1\",\"kind\":\"A\",\"spec\":[{\"a\":1,\n\n\"a\":2}]}\n" + aJSON,
			[]string{`2 1/0: error duplicate key "spec.[0].a"`, "5 2/0: v1 A a"},
		},
		"json items with a key twice": {
			`{"apiVersion":"v1","kind":"AList","items":[{"metadata":{"name":"a"},` + "\n" +
				`"metadata":{}},` + aJSON + `]}`,
			[]string{`1 1/1: error duplicate key "metadata"`, "2 1/2: v1 A a"},
		},
		"json items of no list with a key twice": {
			`{"items":[` + aJSON + `,{"a":1,"a":2}],"apiVersion":"w","kind":"A","metadata":{"name":"a"}}`,
			[]string{`1 1/2: error duplicate key "a"`},
		},
		"json items as an object with a key twice": {
			`{"apiVersion":"v1","kind":"A","items":{"a":{"b":1,"b":2}}}`,
			[]string{`1 1/0: error duplicate key "items.a.b"`},
		},
		"json with deep nesting": {
			strings.TrimSuffix(aJSON, "}") + `,"spec":` + strings.Repeat("[", 6000) + "\n" +
				strings.Repeat("]", 6000) + "}\n" + bJSON,
			[]string{"1 1/0: v1 A a", "3 2/0: v1 B b"},
		},
		"json items twice": {`{"apiVersion":"v1","kind":"List","items":[` + aJSON + `],"items":[` + bJSON +
			`]}`, []string{"1 1/1: v1 A a", "1 1/2: v1 B b", "1 1/0: error " + `duplicate key "items"`}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, describeEntries(t, strings.NewReader(tt.text))); diff != "" {
				t.Errorf("documents (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAliases verifies that aliases may enlarge a document, within limits.
func TestAliases(t *testing.T) {
	bomb := "a: &a \"" + strings.Repeat("x", 90_000) + "\"\nb:\n" + strings.Repeat("- *a\n", 4_000) +
		"apiVersion: v1\nkind: A\n"
	levels := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		levels += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1,
			strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	for name, text := range map[string]string{
		"a long string": bomb, "levels": levels + "apiVersion: v1\nkind: A\n",
		"in an item": "apiVersion: v1\nitems:\n" + item(bomb) + "kind: List\n",
		"itself":     "a: &a [*a]\napiVersion: v1\nkind: A\n",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := describeEntries(t, strings.NewReader(text))
		runtime.ReadMemStats(&after)
		if len(got) != 1 || !strings.Contains(got[0], "aliases make the document more than") &&
			!strings.Contains(got[0], "contains itself") && !strings.Contains(got[0], "excessive aliasing") {
			t.Errorf("%s: got %q, want an error about aliases", name, got)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > uint64(200*len(text)+1<<20) {
			t.Errorf("%s: %d bytes were allocated for a text of %d bytes", name, used, len(text))
		}
	}
	if got := describeEntries(t, strings.NewReader("apiVersion: v1\nkind: A\nmetadata: {name: &n a, labels: {x: *n, y: *n}}\n")); len(
		got) != 1 || got[0] != "1 1/0: v1 A a" {
		t.Errorf("a few aliases: got %q, want one object", got)
	}
}

// TestAllocationIsLinear checks that four times the text allocates about four times the memory.
func TestAllocationIsLinear(t *testing.T) {
	for name, text := range map[string]func(n int) string{
		"blank lines": func(n int) string { return strings.Repeat("\n", n) + aYAML },
		"comments":    func(n int) string { return strings.Repeat("# c\n", n/4) + aYAML },
		"separators":  func(n int) string { return strings.Repeat("---\n", n/4) + aYAML },
		"items lines": func(n int) string {
			return "a: \"\n" + strings.Repeat("items:\n- a\n", n/11) + "\"\n"
		},
		"blank items": func(n int) string {
			return "apiVersion: v1\nitems:\n- a\n" +
				strings.Repeat("\n", n)
		},
		"one large item": func(n int) string {
			return `{"apiVersion":"v1","items":[{"a":"` +
				strings.Repeat("x", n) + `"}]}`
		},
		"a large item and many small ones": func(n int) string {
			return `{"apiVersion":"v1","items":[` + strings.Repeat(aJSON+",\n", n/len(aJSON)) + `{"a":"` +
				strings.Repeat("x", n) + `"}` + strings.Repeat(",\n"+aJSON, n/len(aJSON)) + `]}`
		},
		"json lines": func(n int) string { return strings.Repeat(aJSON+"\n", n/len(aJSON)) },
		"yaml items": func(n int) string {
			return "apiVersion: v1\nitems:\n" +
				strings.Repeat(item(aYAML), n/len(aYAML))
		},
		"items with quotes": func(n int) string {
			return "apiVersion: v1\nitems:\n" +
				strings.Repeat("- a: \"\n", n/7)
		},
		"items with anchors": func(n int) string {
			return "apiVersion: v1\nitems:\n" + strings.Repeat("- &a x\n", n/7) + "- a: b: c\n"
		},
		"broken json": func(n int) string { return "{\"a\": [" + strings.Repeat("1,\n", n/3) + "!" },
	} {
		t.Run(name, func(t *testing.T) {
			measure := func(n int) float64 {
				in := text(n)
				runtime.GC()
				runtime.GC() // the pools of buffers are empty now, and are not emptied meanwhile
				defer debug.SetGCPercent(debug.SetGCPercent(-1))
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				if err := Read(t.Context(), strings.NewReader(in),
					func(Entry) bool { return true }); err != nil {
					t.Fatal(err)
				}
				runtime.ReadMemStats(&after)
				return float64(after.TotalAlloc - before.TotalAlloc)
			}
			if small, large := measure(200_000), measure(800_000); large > 6*small {
				t.Errorf("%.0f bytes were allocated, and %.0f for four times the text, want at most six times as many", small, large)
			}
		})
	}
}

// TestEndsWithContext verifies that reading ends with the context, whatever the input is.
func TestEndsWithContext(t *testing.T) {
	for name, text := range map[string]string{"blank lines": "\n", "json": aJSON, "items": item(aYAML),
		"comments": "# c\n"} {
		ctx, cancel := context.WithCancel(t.Context())
		in := io.Reader(&endlessUntil{text: text, after: 1 << 18, then: cancel})
		if name == "items" {
			in = io.MultiReader(strings.NewReader("apiVersion: v1\nitems:\n"), in)
		}
		if err := Read(ctx, in, func(Entry) bool { return true }); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: Read() = %v, want context.Canceled", name, err)
		}
	}
}

// endlessUntil is an io.Reader that repeats text forever. It calls then in each Read after a number of bytes.
type endlessUntil struct {
	text     string
	at, read int
	after    int
	then     func()
}

func (e *endlessUntil) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[e.at]
		e.at = (e.at + 1) % len(e.text)
	}
	if e.read += len(p); e.read > e.after {
		e.then()
	}
	return len(p), nil
}
