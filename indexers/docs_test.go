package indexers_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/indexers"
)

var (
	documentedIndex = regexp.MustCompile("(?s)```yaml\n(- .*?)```\n\ngives (.*?)\\.\n\n")
	codeSpan        = regexp.MustCompile("`([^`]+)`")
)

// Every example of the documentation gives what it says.
func TestDocumentedExamples(t *testing.T) {
	data, err := os.ReadFile("../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	docs := string(data)
	_, rest, _ := strings.Cut(docs, "look at this object:\n\n```yaml\n")
	text, rest, _ := strings.Cut(rest, "```")
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	examples, _, _ := strings.Cut(rest, "\n## ")
	found := documentedIndex.FindAllStringSubmatch(examples+"\n", -1)
	if n := strings.Count(examples, "```yaml"); len(found) != n || n < 20 {
		t.Fatalf("%d of %d examples say what they give", len(found), n)
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
			t.Errorf("what does %q mean?", example[2])
		}
		if diff := cmp.Diff(want, call(t, compile(t, index), object)); diff != "" {
			t.Errorf("%s(-documented +is):\n%s", example[1], diff)
		}
	}
}

// The config that the documentation begins with is accepted.
func TestDocumentedConfig(t *testing.T) {
	data, err := os.ReadFile("../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "```yaml\n")
	text, _, _ := strings.Cut(rest, "```")
	c, err := indexers.Parse(indexers.Source{Name: "docs.yaml", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Resources) != 1 || len(c.Resources[0].Indexes) != 2 {
		t.Errorf("got %+v", c.Resources)
	}
}
