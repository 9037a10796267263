package indexers_test

import (
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers"
)

// TestDocumentedLookups compares the code in docs/config.md with the tested example, and its table of keys
// with the keys of an index.
func TestDocumentedLookups(t *testing.T) {
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	_, section, _ := strings.Cut(read("../docs/config.md"), "### Look-ups through client-go's interface\n")
	_, code, _ := strings.Cut(section, "```go\n")
	code, _, ok := strings.Cut(code, "```")
	example := read("example_test.go")
	for line := range strings.Lines(code) {
		_, call, _ := strings.Cut(strings.TrimSpace(line), "= ")
		call, _, _ = strings.Cut(strings.TrimSpace(call), " //")
		if call == "" || !strings.Contains(example, call+"\n") {
			t.Errorf("example_test.go does not contain the documented line %q", line)
		}
	}
	if !ok || strings.Count(code, "\n") != 3 {
		t.Errorf("the documented code is %q, want three lines", code)
	}

	object := spec(m{"class": "gold", "level": "07"})
	for index, test := range map[string]struct {
		plain  string   // the value that finds the object without Key, if any
		values []string // the operands of Key
	}{
		"{name: i, path: .spec.level}":                                                                           {"07", []string{"07"}},
		"{name: i, path: .spec.level, order: Sorted}":                                                            {"07", []string{"07"}},
		"{name: i, path: .spec.level, type: Int}":                                                                {"7", []string{"07"}},
		"{name: i, path: .spec.level, type: Int, order: Sorted}":                                                 {"", []string{"7"}},
		"{name: i, key: [{name: c, path: .spec.class}, {name: l, path: .spec.level, type: Int}]}":                {"gold/7", []string{"gold", "7"}},
		"{name: i, order: Sorted, key: [{name: c, path: .spec.class}, {name: l, path: .spec.level, type: Int}]}": {"", []string{"gold", "7"}},
	} {
		f := compile(t, index)
		indexer := cache.NewIndexer(func(any) (string, error) { return "x", nil }, f.Indexers())
		if err := indexer.Add(object); err != nil {
			t.Fatal(err)
		}
		count := func(key string) int {
			keys, err := indexer.IndexKeys("i", key)
			if err != nil {
				t.Fatal(err)
			}
			return len(keys)
		}
		key, err := f.Indexes()[0].Key(test.values...)
		if err != nil || count(key) != 1 {
			t.Errorf("%s: Key(%q) = %q, %v; want the key of the object", index, test.values, key, err)
		}
		if test.plain != "" && count(test.plain) != 1 {
			t.Errorf("%s: IndexKeys(%q) found nothing, want the object", index, test.plain)
		}
		if test.plain == "" && count(indexers.Value(test.values...)) != 0 {
			t.Errorf("%s: IndexKeys(Value(%q)) found the object, want that only Key returns its key", index,
				test.values)
		}
	}
}
