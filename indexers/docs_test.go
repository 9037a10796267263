package indexers_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/indexers"
)

var (
	documentedIndex = regexp.MustCompile("(?s)```yaml\n(- .*?)```\n\ngives (.*?)\\.\n\n")
	codeSpan        = regexp.MustCompile("`([^`]+)`")
)

// TestDocumentedExamples verifies that every example of the documentation has the documented result.
func TestDocumentedExamples(t *testing.T) {
	data, err := os.ReadFile("../docs/config.md")
	noError(t, err)
	docs := string(data)
	_, rest, _ := strings.Cut(docs, "look at this object:\n\n```yaml\n")
	text, rest, _ := strings.Cut(rest, "```")
	var object map[string]any
	noError(t, yaml.Unmarshal([]byte(text), &object))
	examples, _, _ := strings.Cut(rest, "\n## ")
	found := documentedIndex.FindAllStringSubmatch(examples+"\n", -1)
	if n := strings.Count(examples, "```yaml"); len(found) != n || n < 20 {
		t.Fatalf("%d of %d examples have a result", len(found), n)
	}
	for _, example := range found {
		index := strings.ReplaceAll(strings.TrimPrefix(example[1], "- "), "\n", "\n    ")
		var want []string
		for _, span := range codeSpan.FindAllStringSubmatch(example[2], -1) {
			want = append(want, span[1])
		}
		if example[2] == "null" {
			want = []string{indexers.Null}
		}
		if want == nil && example[2] != "nothing" {
			t.Errorf("cannot parse the documented result %q: it has no code span and is not \"nothing\"",
				example[2])
		}
		f := compile(t, index)
		var got []string
		for _, key := range keysOf(t, f, object) {
			got = append(got, indexers.Value(f.Indexes()[0].Parts(key)...))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%skeys (-documented +got):\n%s", example[1], diff)
		}
	}
}

var documentedResource = regexp.MustCompile("(?s)```yaml\n(- name.*?)```\n\n(takes|keeps|removes|stores) (.*?)\\.\n\n")

// spans returns the texts between backquotes.
func spans(text string) (out []string) {
	for _, span := range codeSpan.FindAllStringSubmatch(text, -1) {
		out = append(out, span[1])
	}
	return out
}

// TestDocumentedResources verifies that every resource in docs/config.md has the documented effect.
func TestDocumentedResources(t *testing.T) {
	data, err := os.ReadFile("../docs/config.md")
	noError(t, err)
	_, docs, _ := strings.Cut(string(data), "\n## Resources\n")
	docs, _, _ = strings.Cut(docs, "\n## ")
	found := documentedResource.FindAllStringSubmatch(docs+"\n", -1)
	if n := strings.Count(docs, "```yaml"); len(found) != n || n < 5 {
		t.Fatalf("%d of %d examples have a result", len(found), n)
	}
	for _, example := range found {
		r := parse(t, "  "+strings.ReplaceAll(strings.TrimSpace(example[1]), "\n", "\n  ")+"\n").Resources[0]
		switch example[2] {
		case "keeps":
			if r.Storage.Mode != spans(example[3])[0] {
				t.Errorf("%sstorage mode = %s, want %s", example[1], r.Storage.Mode, spans(example[3])[0])
			}
		case "stores":
			if diff := cmp.Diff(spans(example[3]), r.EffectiveKeep().Paths); diff != "" {
				t.Errorf("%skept paths (-documented +got):\n%s", example[1], diff)
			}
		case "removes":
			if want, got := spans(example[3]), prunedPaths(r); !slices.Equal(want, got) {
				t.Errorf("%sremoved paths (-documented +got):\n%s", example[1], cmp.Diff(want, got))
			}
		default:
			selected, unselected, _ := strings.Cut(example[3], ", not ")
			for text, want := range map[string]bool{selected: true, unselected: false} {
				for _, name := range spans(text) {
					if got := selects(r, name); got != want {
						t.Errorf("%sselects %s = %v, want %v", example[1], name, got, want)
					}
				}
			}
		}
	}
}

// selects reports whether a resource selects a type or a namespace.
func selects(r *indexers.Resource, name string) bool {
	if resource, group, ok := strings.Cut(name, "."); ok {
		if strings.ToLower(resource) != resource { // a kind
			return r.Match.Matches(group, "", resource)
		}
		return r.Match.Matches(group, resource, "")
	}
	return r.Namespaces.Matches(name)
}

// prunedPaths returns the paths that a resource removes, including those of its presets.
func prunedPaths(r *indexers.Resource) (out []string) {
	p := r.EffectivePrune()
	out = append(out, p.Remove...)
	for _, preset := range p.Presets {
		if preset == "ManagedFields" {
			out = append(out, ".metadata.managedFields")
		} else {
			out = append(out, `.metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`)
		}
	}
	return out
}

// TestEveryFieldHasAnExample verifies that every field of a config is in an example.
func TestEveryFieldHasAnExample(t *testing.T) {
	var examples strings.Builder
	for _, file := range []string{"cel.md", "config.md", "metrics.md"} {
		data, err := os.ReadFile("../docs/" + file)
		noError(t, err)
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(
			string(data), -1) {
			examples.WriteString(block[1])
		}
	}
	fields := 0
	var check func(node any)
	check = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, sub := range node {
				check(sub)
			}
		case map[string]any:
			properties, _ := node["properties"].(map[string]any)
			for name := range properties {
				fields++
				if !regexp.MustCompile(`\b` + name + `:`).MatchString(examples.String()) {
					t.Errorf("no example in docs/{cel,config,metrics}.md contains the field %s", name)
				}
			}
			for _, sub := range node {
				check(sub)
			}
		}
	}
	var schema any
	noError(t, json.Unmarshal(indexers.Schema(), &schema))
	check(schema)
	if fields < 35 {
		t.Errorf("the schema has %d fields, want at least 35", fields)
	}
}

// TestDocumentedLookups compares the code in docs/config.md with the tested example, and its table of keys
// with the keys of an index.
func TestDocumentedLookups(t *testing.T) {
	read := func(path string) string {
		data, err := os.ReadFile(path)
		noError(t, err)
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
		noError(t, indexer.Add(object))
		count := func(key string) int {
			keys, err := indexer.IndexKeys("i", key)
			noError(t, err)
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
