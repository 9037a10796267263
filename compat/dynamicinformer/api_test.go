package dynamicinformer_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientgo "k8s.io/client-go/dynamic/dynamicinformer"

	ours "github.com/crdcache/crdcache/compat/dynamicinformer"
)

// The interfaces are interchangeable, so that a program need not change all its imports at once.
var (
	_ ours.DynamicSharedInformerFactory     = clientgo.DynamicSharedInformerFactory(nil)
	_ clientgo.DynamicSharedInformerFactory = ours.DynamicSharedInformerFactory(nil)
)

// TestSameAPI compares every exported declaration except Packed, so that a client-go release that adds or
// changes one does not go unnoticed.
func TestSameAPI(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}",
		"k8s.io/client-go/dynamic/dynamicinformer").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := exported(t, strings.TrimSpace(string(out)))
	if len(want) < 5 {
		t.Fatalf("client-go's package declares %v: the test does not see it all", want)
	}
	want["Packed"] = "func(client `k8s.io/client-go/dynamic`.Interface) `k8s.io/client-go/dynamic`.Interface"
	if diff := cmp.Diff(want, exported(t, ".")); diff != "" {
		t.Errorf("exported declarations (-client-go +ours):\n%s", diff)
	}
}

// TestExported proves that the comparison detects changes of any kind.
func TestExported(t *testing.T) {
	const source = `package p
import meta "k8s.io/meta"
const C, d = 1, 2
var V meta.T
type S struct { F int; g int }
type i interface { M() }
type I interface { M(a meta.T) (err error) }
func F(a, b int, m map[meta.T]string) <-chan meta.T { return nil }
func f() {}
func (s *S) M() {}
func (i) N() {}
`
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	declarations(t, files, file, got)
	want := map[string]string{
		"C": "const",
		"V": "var `k8s.io/meta`.T",
		"S": "struct { F int g int }",
		"I": "interface { M(a `k8s.io/meta`.T) (err error) }",
		"F": "func(a, b int, m map[`k8s.io/meta`.T]string) <-chan `k8s.io/meta`.T",
		// Methods of unexported types cannot be named.
		"(*S) M": "func()",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("declarations (-want +got):\n%s", diff)
	}
}

// exported maps the name of each exported declaration of the package in a folder to its type.
func exported(t *testing.T, dir string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		declarations(t, files, file, all)
	}
	return all
}

func declarations(t *testing.T, files *token.FileSet, file *ast.File, into map[string]string) {
	t.Helper()
	spellOutImports(t, file)
	write := func(node ast.Node) string { return text(t, files, node) }
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name, visible := d.Name.Name, d.Name.IsExported()
			if d.Recv != nil {
				receiver := write(d.Recv.List[0].Type)
				name, visible = "("+receiver+") "+name, visible &&
					ast.IsExported(strings.TrimPrefix(receiver, "*"))
			}
			if visible {
				into[name] = write(d.Type)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						into[s.Name.Name] = write(s.Type)
					}
				case *ast.ValueSpec:
					for _, name := range s.Names {
						if name.IsExported() {
							into[name.Name] = strings.TrimSpace(d.Tok.String() + " " + write(s.Type))
						}
					}
				}
			}
		}
	}
}

// spellOutImports replaces the names of imported packages by their paths, which both sides share.
func spellOutImports(t *testing.T, file *ast.File) {
	t.Helper()
	paths := map[string]string{}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		paths[name] = path
	}
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if name, ok := selector.X.(*ast.Ident); ok && paths[name.Name] != "" {
				name.Name = "`" + paths[name.Name] + "`"
			}
		}
		return true
	})
}

// text prints a node in one line, without its comments.
func text(t *testing.T, files *token.FileSet, node ast.Node) string {
	t.Helper()
	if node == ast.Expr(nil) {
		return ""
	}
	ast.Inspect(node, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok {
			field.Doc, field.Comment = nil, nil
		}
		return true
	})
	var b bytes.Buffer
	if err := printer.Fprint(&b, files, node); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(b.String(), "\n", " ")), " ")
}
