package guard

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
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
