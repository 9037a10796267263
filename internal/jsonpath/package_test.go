package jsonpath_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// TestCodesAreDocumented verifies that every code is documented, and every error code is in the golden file.
func TestCodesAreDocumented(t *testing.T) {
	read := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	docs, errorTexts := read("../../docs/jsonpath.md"), read("testdata/errors.golden")
	codes := regexp.MustCompile(`= "([EW]\d+)"`).FindAllStringSubmatch(read("diagnostic.go"), -1)
	if len(codes) < 20 {
		t.Fatalf("diagnostic.go has %d codes, want at least 20", len(codes))
	}
	for _, c := range codes {
		if !strings.Contains(docs, "| "+c[1]+" |") {
			t.Errorf("docs/jsonpath.md does not document %s", c[1])
		}
		if strings.HasPrefix(c[1], "E") && !strings.Contains(errorTexts, ": "+c[1]+": ") {
			t.Errorf("errors.golden has no error with the code %s", c[1])
		}
	}
}

// TestDocumentedExamples verifies that the examples in the first table of the documentation are correct.
func TestDocumentedExamples(t *testing.T) {
	b, err := os.ReadFile("../../docs/jsonpath.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "```json\n")
	doc, rest, _ := strings.Cut(rest, "```")
	table, _, _ := strings.Cut(rest, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| `(.+?)` \\| `(.+?)` \\|").FindAllStringSubmatch(table, -1)
	if len(rows) < 20 {
		t.Fatalf("the documentation has %d examples, want at least 20", len(rows))
	}
	for _, row := range rows {
		p, err := jsonpath.Compile(row[1])
		if err != nil {
			t.Errorf("Compile(%s): %v", row[1], err)
			continue
		}
		if diff := difference(list(t, row[2]), evaluate(t, p, []byte(doc))); diff != "" {
			t.Errorf("results of %s (-documented +got):\n%s", row[1], diff)
		}
	}
}
