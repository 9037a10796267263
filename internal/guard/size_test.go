package guard

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	// maxPackages is the number of packages outside internal folders. files-per-package bounds the others.
	maxPackages = 37
	// maxTypes is the number of types that go doc dynamicinformer shows.
	maxTypes = 30
	// maxNames is the number of names that the public packages of the root module export, methods included.
	maxNames = 982
)

// countExported counts the exported names of a package without its tests: types, and all names with methods.
func (p sourcePackage) countExported() (typeNames, names int) {
	for name, source := range p.files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if err != nil || !ast.FileExports(file) {
			continue
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil || ast.IsExported(receiver(decl)) {
					names++
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						typeNames++
						names++
					case *ast.ValueSpec:
						names += len(spec.Names)
					}
				}
			}
		}
	}
	return typeNames, names
}

func TestExported(t *testing.T) {
	p := sourcePackage{"p", map[string][]byte{
		"a.go": []byte("package p\ntype A int\ntype b int\nfunc (A) C() {}\nfunc (b) D() {}\n" +
			"const E, f = 1, 2\nfunc g() {}\n"),
		"a_test.go": []byte("package p\ntype T int\n"),
	}}
	if types, names := p.countExported(); types != 1 || names != 3 {
		t.Errorf("%d types and %d names are exported, want 1 and 3", types, names)
	}
}

func TestNumberOfNames(t *testing.T) {
	var violations []string
	packages, total := 0, 0
	nested := nestedModules(t)
	for _, p := range sourcePackages(t) {
		for name := range p.files {
			if !strings.HasSuffix(name, "_test.go") && !strings.Contains(p.dir, "internal") {
				packages++
				break
			}
		}
		if !p.isPublic(nested) {
			continue
		}
		types, names := p.countExported()
		total += names
		if p.dir == "dynamicinformer" && types > maxTypes {
			violations = append(violations, fmt.Sprintf("%d types, at most %d", types, maxTypes))
		}
	}
	if total > maxNames {
		violations = append(violations, fmt.Sprintf("%d names are exported, at most %d", total, maxNames))
	}
	if packages > maxPackages {
		violations = append(violations, fmt.Sprintf("%d packages, at most %d", packages, maxPackages))
	}
	reportViolations(t, violations)
}

// rings are the folders of each ring of the project. All other folders belong to the mission.
var rings = map[string][]string{
	"adapters": {"adapters", "internal/block"}, // the format of adapters/storage/disk
	"serving":  {"serving"},
	"test":     {"test", "examples", "internal/testkit", "internal/guard", "internal/informer/conformance"},
}

// ringOf returns the ring of a Go file without tests.
func ringOf(file string) string {
	for ring, folders := range rings {
		if slices.ContainsFunc(folders, func(folder string) bool { return isWithin(file, folder) }) {
			return ring
		}
	}
	return "mission"
}

// measure returns the sizes that rings.txt limits. The values of files are numbers of lines.
func measure(files map[string]int) map[string]int {
	sizes := map[string]int{}
	folders, packages := map[string]bool{}, map[string]int{}
	for name, lines := range files {
		if first, _, nested := strings.Cut(name, "/"); !strings.HasPrefix(first, ".") {
			if !nested {
				sizes["root-files"]++
			} else {
				folders[first] = true
			}
		}
		switch {
		case path.Base(name) == "go.mod":
			sizes["modules"]++
		case !strings.HasSuffix(name, ".go") || strings.Contains(name, "testdata/"):
		case strings.HasSuffix(name, "_test.go"):
			sizes["tests"] += lines
		default:
			sizes[ringOf(name)] += lines
			packages[path.Dir(name)]++
		}
	}
	sizes["root-folders"] = len(folders)
	for _, count := range packages {
		sizes["files-per-package"] = max(sizes["files-per-package"], count)
	}
	return sizes
}

// readLimits reads the limits of a file with a name and a number in each line.
func readLimits(t *testing.T, text string) map[string]int {
	t.Helper()
	limits := map[string]int{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		limit, err := strconv.Atoi(fields[len(fields)-1])
		if err != nil || len(fields) != 2 {
			t.Fatalf("rings.txt: want a name and a number, got %q", line)
		}
		limits[fields[0]] = limit
	}
	return limits
}

// aboveLimits lists the sizes above their limits, and the sizes and limits without a counterpart.
func aboveLimits(sizes, limits map[string]int) []string {
	var violations []string
	for name, size := range sizes {
		if limit, ok := limits[name]; !ok || size > limit {
			violations = append(violations, fmt.Sprintf("%s: %d, at most %d: delete as much as you add", name, size, limit))
		}
	}
	for name := range limits {
		if _, ok := sizes[name]; !ok {
			violations = append(violations, fmt.Sprintf("rings.txt limits %s, which is not measured", name))
		}
	}
	return violations
}

// TestRings holds the project to rings.txt; make size shows the sizes.
func TestRings(t *testing.T) {
	lines := map[string]int{}
	for _, name := range files(t) {
		lines[name] = 0
		if strings.HasSuffix(name, ".go") {
			lines[name] = bytes.Count(readFile(t, name), []byte("\n"))
		}
	}
	text, err := os.ReadFile("testdata/rings.txt")
	if err != nil {
		t.Fatal(err)
	}
	sizes, limits := measure(lines), readLimits(t, string(text))
	for name, limit := range limits {
		t.Logf("%-18s %7d of %7d", name, sizes[name], limit)
	}
	reportViolations(t, aboveLimits(sizes, limits))
}

func TestAboveLimits(t *testing.T) {
	sizes := measure(map[string]int{
		"go.mod": 0, ".ci/run": 0, "serving/web.go": 10, "serving/web_test.go": 30, "discovery/a.go": 5, "discovery/b.go": 6,
		"adapters/go.mod": 0, "adapters/cel.go": 1, "test/main.go": 2, "serving/testdata/x.go": 99,
	})
	limits := map[string]int{"mission": 11, "adapters": 1, "serving": 10, "test": 2, "tests": 30, "modules": 2,
		"root-files": 1, "root-folders": 4, "files-per-package": 2}
	expectViolations(t, aboveLimits(sizes, limits))
	for name := range limits {
		limits[name]--
		expectViolations(t, aboveLimits(sizes, limits), fmt.Sprintf("%s: %d, at most %d", name, sizes[name], limits[name]))
		limits[name]++
	}
	limits["other"] = 1
	expectViolations(t, aboveLimits(sizes, limits), "other, which is not measured")
}
