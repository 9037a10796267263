package loader

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// summary returns "number kind namespace/name" of each document.
func summary(docs []Document) []string {
	var lines []string
	for _, doc := range docs {
		lines = append(lines, strings.TrimPrefix(doc.String(), doc.File+": "))
	}
	return lines
}

func TestParse(t *testing.T) {
	tests := map[string]struct {
		reason string
		file   string
		data   string
		want   []string
		errs   []string
	}{
		"several documents": {
			reason: "empty and comment-only documents count, but hold nothing",
			data:   "# top\n---\napiVersion: v1\nkind: A\nmetadata: {name: a}\n---\n# only this\n---\napiVersion: v1\nkind: B\nmetadata: {name: b, namespace: ns}\n",
			want:   []string{"document 2 (A a)", "document 4 (B ns/b)"},
		},
		"list": {
			reason: "items are objects of their own, under the list's number",
			data:   "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: x}}\n- {apiVersion: v1, kind: A, metadata: {name: z}}\n",
			want:   []string{"document 1 (A x)", "document 1 (A z)"},
		},
		"empty list": {
			reason: "that is what kubectl get prints when there is nothing",
			data:   "apiVersion: v1\nkind: List\nitems: []\n",
		},
		"kind that ends in List": {
			reason: "without items it is an ordinary object",
			data:   "apiVersion: example.com/v1\nkind: PriceList\nmetadata: {name: p}\n",
			want:   []string{"document 1 (PriceList p)"},
		},
		"json stream": {
			reason: "JSON documents need no separator",
			file:   "f.json",
			data:   `{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}} {"apiVersion":"v1","kind":"B","metadata":{"name":"b"}}`,
			want:   []string{"document 1 (A a)", "document 2 (B b)"},
		},
		"broken among good ones": {
			reason: "one broken document hides neither the others nor the next error",
			data:   "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\nx: [\n---\nkind: A\n---\napiVersion: v1\nkind: A\n---\njust text\n",
			want:   []string{"document 1 (A a)"},
			errs: []string{"document 2: ", "document 3: apiVersion and kind are required",
				"document 4: A: metadata.name is required", "document 5: not an object"},
		},
		"template": {
			reason: "the usual mistake deserves a hint",
			data:   "a: {{ .Values.x }}\n",
			errs:   []string{"document 1: ", "looks like a template"},
		},
		"name that YAML takes for something else": {
			reason: "an object must not land in another namespace in silence",
			data:   "apiVersion: v1\nkind: A\nmetadata: {name: a, namespace: n}\n---\napiVersion: v1\nkind: A\nmetadata: {name: 12}\n",
			errs: []string{"document 1: A: metadata.namespace is not a string",
				"document 2: A: metadata.name is not a string"},
		},
		"broken json": {
			reason: "nothing after a syntax error can be trusted",
			file:   "f.json",
			data:   `{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}} {]`,
			errs:   []string{"document 2: invalid character"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.file == "" {
				test.file = "f.yaml"
			}
			docs, err := parse(test.file, []byte(test.data))
			if diff := cmp.Diff(test.want, summary(docs)); diff != "" {
				t.Errorf("%s:\n%s", test.reason, diff)
			}
			if (err != nil) != (test.errs != nil) {
				t.Fatalf("error %v, want some: %v", err, test.errs != nil)
			}
			for _, want := range test.errs {
				if !strings.Contains(err.Error(), test.file+": "+want) &&
					!strings.Contains(err.Error(), want) {
					t.Errorf("%s: error lacks %q: %v", test.reason, want, err)
				}
			}
		})
	}
}

func TestNumbersStayIntegers(t *testing.T) {
	docs, err := parse("f.yaml",
		[]byte("apiVersion: v1\nkind: A\nmetadata: {name: a}\ncount: 9007199254740993\n"))
	if err != nil {
		t.Fatal(err)
	}
	if n := docs[0].Object.Object["count"]; n != int64(9007199254740993) {
		t.Errorf("count is %T %v", n, n)
	}
}

func TestReadPaths(t *testing.T) {
	dir := t.TempDir()
	for name, kind := range map[string]string{
		"b.yaml": "B", "a.yml": "A", "deep/c.json": "", "notes.txt": "X", "tpl.yaml.gotmpl": "X",
	} {
		path := filepath.Join(dir, name)
		data := "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: x}\n"
		if filepath.Ext(name) == ".json" {
			data = `{"apiVersion":"v1","kind":"C","metadata":{"name":"x"}}`
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	docs, err := ReadPaths([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"document 1 (A x)", "document 1 (B x)", "document 1 (C x)"},
		summary(docs)); diff != "" {
		t.Error(diff)
	}
	// A named file is read whatever its extension.
	docs, err = ReadPaths([]string{filepath.Join(dir, "notes.txt")})
	if err != nil || len(docs) != 1 {
		t.Errorf("%v, %v", docs, err)
	}
	if _, err := ReadPaths([]string{t.TempDir()}); err == nil || !strings.Contains(err.Error(), "no .yaml") {
		t.Errorf("empty directory: %v", err)
	}
}

func TestDesiredDropsWhatTheServerOwns(t *testing.T) {
	docs, err := parse("f.yaml", []byte(`apiVersion: v1
kind: A
metadata: {name: a, uid: u, resourceVersion: "1", generation: 2, creationTimestamp: null, managedFields: [], labels: {l: v}}
status: {x: 1}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "A",
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"l": "v"}},
		"status":   map[string]any{"x": int64(1)},
	}
	if diff := cmp.Diff(want, withoutServerFields(docs[0].Object).Object); diff != "" {
		t.Error(diff)
	}
	if docs[0].Object.GetUID() != "u" {
		t.Error("the original was changed")
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "---\n---\n", "a: {{ x }}", "apiVersion: v1\nkind: List\nitems: [null, 1, {}]\n",
		"apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\n# c\n",
		`{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}`,
		"apiVersion: v1\nkind: A\nmetadata: 3\n", "kind: List\napiVersion: v1\nitems: 3\n",
		"a: &a [*a]", "? [x]\n: y",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data string) {
		for _, file := range []string{"f.yaml", "f.json"} {
			docs, _ := parse(file, []byte(data))
			for _, doc := range docs {
				if doc.Object.GetName() == "" || doc.Object.GetKind() == "" ||
					doc.Object.GetAPIVersion() == "" || doc.Number < 1 {
					t.Fatalf("incomplete document %v", doc)
				}
				withoutServerFields(doc.Object)
			}
		}
	})
}
