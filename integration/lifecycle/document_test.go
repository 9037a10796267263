package lifecycle_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentNamesRealTests checks that the tests in the table of docs/design/lifecycle.md exist.
func TestDocumentNamesRealTests(t *testing.T) {
	const root = "../.."
	document, err := os.ReadFile(filepath.Join(root, "docs", "design", "lifecycle.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(document), "## Which test shows which rule\n")
	if !found {
		t.Fatal("there is no such section")
	}
	group := regexp.MustCompile("`([^`]+)`: ([^;|]+)")
	named := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for column, base := range map[int]string{2: filepath.Join(root, "integration"), 3: root} {
			for _, m := range group.FindAllStringSubmatch(cells[column], -1) {
				for name := range strings.SplitSeq(m[2], ",") {
					named++
					expectTest(t, filepath.Join(base, m[1]), strings.TrimSpace(name))
				}
			}
		}
	}
	if named < 50 {
		t.Errorf("the table names %d tests: it was not understood", named)
	}
}

func expectTest(t *testing.T, folder, name string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(code), "\nfunc "+name+"(") {
			return
		}
	}
	t.Errorf("there is no test %s in %s", name, folder)
}
