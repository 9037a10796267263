package guard

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strconv"
	"strings"
	"testing"
)

// internalTypes lists exported declarations that refer to types of internal packages: users cannot name
// such types. An alias of a string type is allowed: users need only its constants.
func (p sourcePackage) internalTypes(names map[string]bool) []string {
	var violations []string
	for name, source := range p.files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if err != nil || !ast.FileExports(file) {
			continue // the compiler reports a syntax error; a file without exports has no public signatures
		}
		hidden := map[string]bool{}
		for _, spec := range file.Imports {
			if target, _ := strconv.Unquote(spec.Path.Value); strings.Contains(target, "/internal/") {
				hidden[path.Base(target)] = true
			}
		}
		for _, decl := range file.Decls {
			for declared, part := range declarations(decl) {
				ast.Inspect(part, func(n ast.Node) bool {
					selector, ok := n.(*ast.SelectorExpr)
					if !ok {
						return true
					}
					if x, ok := selector.X.(*ast.Ident); ok && hidden[x.Name] &&
						!names[x.Name+"."+selector.Sel.Name] {
						violations = append(violations,
							fmt.Sprintf("%s.%s refers to %s.%s, which is internal", p.dir, declared, x.Name,
								selector.Sel.Name))
					}
					return true
				})
			}
		}
	}
	return violations
}

// stringTypes returns the types of internal packages that are strings, each as "package.Type".
func stringTypes(all []sourcePackage) map[string]bool {
	names := map[string]bool{}
	for _, p := range all {
		if !strings.Contains("/"+p.dir+"/", "/internal/") {
			continue
		}
		for name, source := range p.files {
			file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
			if err != nil {
				continue // the compiler reports it
			}
			for _, decl := range file.Decls {
				for declared, part := range declarations(decl) {
					if kind, ok := part.(*ast.Ident); ok && kind.Name == "string" {
						names[path.Base(p.dir)+"."+declared] = true
					}
				}
			}
		}
	}
	return names
}

// declarations returns the exported parts of a declaration by name, without function bodies, values, and
// methods of unexported types.
func declarations(decl ast.Decl) map[string]ast.Node {
	seen := map[string]ast.Node{}
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil || ast.IsExported(receiver(decl)) {
			seen[decl.Name.Name] = decl.Type
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				seen[spec.Name.Name] = spec.Type
			case *ast.ValueSpec:
				if spec.Type != nil {
					seen[spec.Names[0].Name] = spec.Type
				}
			}
		}
	}
	return seen
}

// receiver returns the name of the type of a method.
func receiver(method *ast.FuncDecl) string {
	name := ""
	ast.Inspect(method.Recv.List[0].Type, func(node ast.Node) bool {
		if ident, ok := node.(*ast.Ident); ok && name == "" {
			name = ident.Name
		}
		return true
	})
	return name
}

func TestSignatures(t *testing.T) {
	all := sourcePackages(t)
	names := stringTypes(all)
	for _, p := range all {
		if p.isPublic([]string{"test/sandbox", "test/integration"}) {
			t.Run(p.dir, func(t *testing.T) { reportViolations(t, p.internalTypes(names)) })
		}
	}
}
