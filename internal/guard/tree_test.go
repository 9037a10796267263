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
// Each guard is a function from plain values to a list of violations. Other functions collect the values from
// the go command and the repository's files.
package guard

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"testing"
)

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

func TestNoMachinePaths(t *testing.T) {
	for _, name := range files(t) {
		if path.Ext(name) != ".sum" { // checksums are base64 and may contain anything
			reportViolations(t, machinePaths(name, readFile(t, name)))
		}
	}
}
