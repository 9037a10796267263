package guard

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// maxLines limits the length of a file. Most files have fewer than 300 lines.
const maxLines = 800

// sourcePackage is the Go source of one folder: file names without the folder, and their content.
type sourcePackage struct {
	dir   string
	files map[string][]byte
}

// isPublic reports whether other modules can import the package: it is in the root module, not internal and
// not a command.
func (p sourcePackage) isPublic(nestedModules []string) bool {
	for _, module := range nestedModules {
		if isWithin(p.dir, module) {
			return false
		}
	}
	parts := strings.Split(p.dir, "/")
	return !slices.Contains(parts, "internal") && !slices.Contains(parts, "testdata") && parts[0] != "cmd"
}

// violations lists violations of the package.
func (p sourcePackage) violations(public bool) []string {
	var violations, documented []string
	var tests []*ast.File
	isPackage := false
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		source := p.files[name]
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
		if err != nil {
			violations = append(violations, fmt.Sprintf("%s: %v", p.dir, err))
			continue
		}
		if strings.HasSuffix(name, "_test.go") {
			tests = append(tests, file)
			continue
		}
		isPackage = true
		if file.Doc != nil {
			documented = append(documented, name)
		}
		if lines := bytes.Count(source, []byte("\n")); lines > maxLines && !ast.IsGenerated(file) {
			violations = append(violations,
				fmt.Sprintf("%s/%s has %d lines, at most %d are allowed: split it by content", p.dir,
					name, lines, maxLines))
		}
	}
	if !isPackage {
		return violations
	}
	if len(documented) != 1 {
		violations = append(violations, fmt.Sprintf("%s has %d files with a package comment, want one: %v",
			p.dir, len(documented), documented))
	} else if public && documented[0] != "doc.go" {
		violations = append(violations, fmt.Sprintf("%s has its package comment in %s, want doc.go", p.dir,
			documented[0]))
	}
	if public && !slices.ContainsFunc(doc.Examples(tests...), isRunnable) {
		violations = append(violations,
			fmt.Sprintf("%s has no runnable example (func Example with an // Output: comment)", p.dir))
	}
	return violations
}

// isRunnable reports whether go test runs the example and compares its output.
func isRunnable(e *doc.Example) bool { return e.Output != "" || e.EmptyOutput }

// sourcePackages collects the Go source of the repository by folder.
func sourcePackages(t *testing.T) []sourcePackage {
	t.Helper()
	byDir := map[string]map[string][]byte{}
	for _, name := range files(t) {
		if path.Ext(name) != ".go" {
			continue
		}
		dir := path.Dir(name)
		if byDir[dir] == nil {
			byDir[dir] = map[string][]byte{}
		}
		byDir[dir][path.Base(name)] = readFile(t, name)
	}
	var all []sourcePackage
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		all = append(all, sourcePackage{dir, byDir[dir]})
	}
	return all
}

// nestedModules returns the folders of all modules except the root.
func nestedModules(t *testing.T) []string {
	t.Helper()
	var nested []string
	for _, name := range files(t) {
		if path.Base(name) == "go.mod" && name != "go.mod" {
			nested = append(nested, path.Dir(name))
		}
	}
	return nested
}

func TestPackages(t *testing.T) {
	nested := nestedModules(t)
	for _, p := range sourcePackages(t) {
		t.Run(p.dir, func(t *testing.T) { reportViolations(t, p.violations(p.isPublic(nested))) })
	}
}
