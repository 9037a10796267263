package informer

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestContractNamesRealTests fails when the contract on Informer refers to a test that does not exist.
func TestContractNamesRealTests(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	ofTheStore, err := filepath.Glob("../store/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, ofTheStore...)
	tests := map[string]bool{}
	contract := ""
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				tests[d.Name.Name] = true
			case *ast.GenDecl:
				if doc := d.Doc.Text(); strings.Contains(doc, "Contract\n") {
					contract = doc
				}
			}
		}
	}
	names := regexp.MustCompile(`Test[A-Z]\w+`).FindAllString(contract, -1)
	if len(names) < 20 {
		t.Fatalf("the contract names %d tests only", len(names))
	}
	for _, name := range names {
		if !tests[name] {
			t.Errorf("the contract names %s, which does not exist", name)
		}
	}
}
