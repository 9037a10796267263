package guard

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```$")
	heading   = regexp.MustCompile("(?m)^#+ (.*)$")
	link      = regexp.MustCompile(`\]\(([^)\s:]*)\)`) // only web addresses contain a colon
	testName  = regexp.MustCompile(`\b(Test|Fuzz|Benchmark)[A-Z]\w+`)
	code      = regexp.MustCompile(`= "([EW]\d{3})"`)
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
)

// anchor returns the fragment by which GitHub links to a heading.
func anchor(title string) string {
	title = regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(title), "")
	return strings.ReplaceAll(title, " ", "-")
}

// TestDocuments checks the links of documents, the existence of the tests they name, their lengths, and that
// they list the code of each finding.
func TestDocuments(t *testing.T) {
	pages, anchors := map[string]string{}, map[string]bool{}
	tests, codes := map[string]bool{}, map[string]string{}
	for _, name := range files(t) {
		isTest, isCode := strings.HasSuffix(name, "_test.go"), path.Ext(name) == ".go"
		if !isCode && path.Ext(name) != ".md" {
			continue
		}
		text := readFile(t, name)
		if isTest {
			for _, match := range testFunc.FindAllSubmatch(text, -1) {
				tests[string(match[1])] = true
			}
			continue
		}
		if isCode {
			for _, match := range code.FindAllSubmatch(text, -1) {
				codes[string(match[1])] = name
			}
			continue
		}
		pages[name] = string(text)
		for _, match := range heading.FindAllSubmatch(codeBlock.ReplaceAll(text, nil), -1) {
			anchors[name+"#"+anchor(string(match[1]))] = true
		}
	}
	total, design := 0, 0
	for name, text := range pages {
		for _, test := range testName.FindAllString(text, -1) {
			if !tests[test] {
				t.Errorf("%s names the test %s, which does not exist", name, test)
			}
		}
		for _, match := range link.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
			file, fragment, _ := strings.Cut(match[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, match[1])
			} else if fragment != "" && !anchors[target+"#"+fragment] {
				t.Errorf("%s links to %s: there is no such heading", name, match[1])
			}
		}
		words := len(strings.Fields(text))
		switch path.Dir(name) {
		case "docs/design":
			design += words
			fallthrough
		case ".", "docs":
			total += words
		}
		// Reference pages can be longer, because users search them.
		if most := map[string]int{"docs/config.md": 4000, "docs/jsonpath.md": 2500,
			"docs/operations.md": 2500, "docs/design/lifecycle.md": 2700}[name]; words > max(2000, most) {
			t.Errorf("%s has %d words, want at most %d", name, words, max(2000, most))
		}
	}
	for code, name := range codes {
		if !strings.Contains(pages["docs/config.md"]+pages["docs/jsonpath.md"], "| "+code+" |") {
			t.Errorf("neither docs/config.md nor docs/jsonpath.md lists the code %s of %s", code, name)
		}
	}
	if len(codes) < 70 {
		t.Errorf("found %d codes, want at least 70", len(codes))
	}
	if want := fmt.Sprintf("adds %d packages", libraryBudget.most); !strings.Contains(pages["README.md"], want) {
		t.Errorf("README.md does not say that importing the library %s", want)
	}
	if lines := strings.Count(pages["README.md"], "\n"); total > 40_000 || design > 9_000 || lines > 110 {
		t.Errorf("%d words, %d of design, %d lines of README; want at most 40,000, 9,000 and 110", total,
			design, lines)
	}
}

// figure finds a number with a unit.
var figure = regexp.MustCompile(`\b\d[\d,.]*(?:×| (?:B|KiB|MiB|GiB|ns|µs|ms|s)\b)`)

// TestFigures checks that the generated docs/benchmarks.md has each figure of a paragraph that links to it,
// and of the table below that paragraph.
func TestFigures(t *testing.T) {
	measured := figure.FindAllString(string(readFile(t, "docs/benchmarks.md")), -1)
	found := 0
	for _, name := range files(t) {
		isPage := strings.HasPrefix(name, "docs/") && path.Ext(name) == ".md"
		if name != "README.md" && !isPage || name == "docs/benchmarks.md" {
			continue
		}
		linked := false
		for block := range strings.SplitSeq(string(readFile(t, name)), "\n\n") {
			linked = strings.Contains(block, "benchmarks.md") || linked && strings.HasPrefix(block, "|")
			if !linked {
				continue
			}
			for _, f := range figure.FindAllString(block, -1) {
				found++
				if !slices.Contains(measured, f) {
					t.Errorf("%s: docs/benchmarks.md has no figure %s", name, f)
				}
			}
		}
	}
	if found < 35 {
		t.Errorf("found %d figures, want at least 35", found)
	}
}
