package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestRead(t *testing.T) {
	for _, tc := range []struct {
		name    string
		files   map[string]string
		path    string
		want    []string
		wantErr string
	}{
		{
			name: "a folder, in order",
			files: map[string]string{
				"b.yaml":     "kind: A\nmetadata: {name: third}\n",
				"a.yaml":     "---\nkind: A\nmetadata: {name: first}\n---\n---\nkind: A\nmetadata: {name: second}\n",
				"sub/c.json": `{"kind":"A","metadata":{"name":"fourth"}}`,
				"README.md":  "not an object",
			},
			path: ".", want: []string{"first", "second", "third", "fourth"},
		},
		{name: "a file of any name", files: map[string]string{"crd": "kind: A\nmetadata: {name: one}\n"},
			path: "crd", want: []string{"one"}},
		{name: "no kind", files: map[string]string{"a.yaml": "metadata: {name: one}\n"}, path: ".",
			wantErr: "document 1"},
		{name: "not YAML", files: map[string]string{"a.yaml": "kind: [\n"}, path: ".", wantErr: "a.yaml"},
		{name: "empty folder", path: ".", wantErr: "no objects"},
		{name: "missing", path: "nowhere", wantErr: "nowhere"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range tc.files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			objects, err := read([]string{filepath.Join(dir, tc.path)})
			checkMessage(t, err, tc.wantErr)
			var names []string
			if err == nil {
				for _, o := range objects {
					names = append(names, o.GetName())
				}
			}
			if diff := cmp.Diff(tc.want, names); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadKeepsLargeIntegers(t *testing.T) {
	const large = 1<<63 - 1
	path := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, "kind: A\nmetadata: {name: one}\nsize: %d\n", large),
		0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(int64(large)), ReadManifests(t, path)[0].Object["size"]); diff != "" {
		t.Errorf("size (-want +got):\n%s", diff)
	}
}

func TestUniqueName(t *testing.T) {
	seen := map[string]bool{}
	for _, test := range []string{
		"TestSimple", "TestSimple", "Test", "TestÜmlaut/mit_Leer zeichen", "TestA/" + strings.Repeat("x",
			300), "Test---", "TestA/2",
	} {
		name := uniqueName(test)
		if seen[name] {
			t.Errorf("%s got the name %s, which is taken", test, name)
		}
		seen[name] = true
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			t.Errorf("%s got the name %q: %v", test, name, problems)
		}
	}
}

func TestGroup(t *testing.T) {
	one, two := Group(t), Group(t)
	if one == two {
		t.Errorf("both groups are called %s", one)
	}
	if problems := validation.IsDNS1123Subdomain(one); len(problems) > 0 {
		t.Errorf("the group %q: %v", one, problems)
	}
}
