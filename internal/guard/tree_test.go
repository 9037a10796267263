// Package guard checks rules that concern several packages. It contains only tests:
//
//   - the cost of importing the library, and its forbidden dependencies (imports_test.go)
//   - which of our packages may import the expensive ones (layers_test.go)
//   - the direction of imports: never from the engine to public packages, never in a circle in the command
//     (direction_test.go)
//   - the content of the root go.mod, which the workspace must not change (modules_test.go)
//   - documentation, examples and size of every package (packages_test.go)
//   - that no public signature needs a type of an internal package (signatures_test.go)
//   - how large each folder is, how wide lines are, and how many names are exported (size_test.go)
//   - that comments name only identifiers that exist (names_test.go)
//   - which files exist, and that none contains a path of a developer's machine (tree_test.go)
//
// Each guard is a function from plain values to a list of violations. A test passes a violation to each guard
// and expects it to be reported. Other functions collect the values from the go command and the repository's
// files.
package guard

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"testing"
)

// requiredEntries are the top-level files and folders that documentation, scripts and users rely on.
var requiredEntries = []string{"go.mod", "dynamicinformer", "discovery", "indexers", "cmd", "testdata", "README.md"}

// missingEntries lists the entries that do not exist.
func missingEntries(entries, files []string) []string {
	var violations []string
	for _, entry := range entries {
		if !slices.ContainsFunc(files, func(name string) bool { return isWithin(name, entry) }) {
			violations = append(violations, fmt.Sprintf("%s is missing", entry))
		}
	}
	return violations
}

// machinePath matches an absolute path into a home directory or checkout. It must not follow a longer path or
// a web address. The expression is concatenated so that it does not match itself.
var machinePath = regexp.MustCompile(`(^|[^A-Za-z0-9_.+~}*)/-])/(` + `root|work|home|Users` + `)/`)

// machinePaths lists the lines of a text with such a path. It ignores binary files, which contain a zero
// byte.
func machinePaths(name string, content []byte) []string {
	if bytes.IndexByte(content, 0) >= 0 {
		return nil
	}
	var violations []string
	for i, line := range bytes.Split(content, []byte("\n")) {
		if machinePath.Match(line) {
			violations = append(violations, fmt.Sprintf("%s:%d names a path of one machine: %s", name, i+1,
				bytes.TrimSpace(line)))
		}
	}
	return violations
}

func TestEntries(t *testing.T) {
	reportViolations(t, missingEntries(requiredEntries, files(t)))
}

func TestMissingEntries(t *testing.T) {
	tests := map[string]struct {
		files []string
		want  []string
	}{
		"all there": {[]string{"go.mod", "cmd/x/main.go"}, nil},
		"no file":   {[]string{"cmd/x/main.go"}, []string{"go.mod is missing"}},
		"no folder": {[]string{"go.mod"}, []string{"cmd is missing"}},
		"similar name": {[]string{"go.mod.txt", "cmdx/main.go"},
			[]string{"go.mod is missing", "cmd is missing"}},
		"elsewhere": {[]string{"a/go.mod", "a/cmd/main.go"},
			[]string{"go.mod is missing", "cmd is missing"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			expectViolations(t, missingEntries([]string{"go.mod", "cmd"}, tt.files),
				tt.want...)
		})
	}
}

func TestNoMachinePaths(t *testing.T) {
	for _, name := range files(t) {
		if path.Base(name) != "go.sum" { // checksums are base64 and may contain anything
			reportViolations(t, machinePaths(name, readFile(t, name)))
		}
	}
}

func TestMachinePaths(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"start of line": {"/" + "root/x", []string{"f:1 "}},
		"quoted":        {"ok\nkubeconfig: \"/" + "home/me/.kube\"\n", []string{"f:2 "}},
		"flag":          {"--dir=/" + "work/tree", []string{"f:1 "}},
		"two lines":     {"(/" + "work/a)\n\n /" + "Users/b", []string{"f:1 ", "f:3 "}},
		"web address":   {"https://example.com/home/x", nil},
		"relative":      {"./" + "work/x ../home/y a/root/b", nil},
		"variable":      {"${BASE}/root/x ~/" + "work/y", nil},
		"other path":    {"/usr/bin /var/run /tmp/home", nil},
		"only the name": {"cd /home", nil},
		"binary":        {"\x00/" + "root/x", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			expectViolations(t, machinePaths("f", []byte(tt.text)),
				tt.want...)
		})
	}
}

// TestTestdata runs the tests of the folder testdata, which ./... does not match.
func TestTestdata(t *testing.T) {
	goCommand(t, ".", "test", "./testdata")
}
