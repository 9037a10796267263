package adopters_test

import (
	"go/ast"
	"go/format"
	"go/parser"
	"go/scanner"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"testing"
)

// deleteDeclarations deletes declarations of a file, T or T.method, with the imports that only they use. It
// returns the file and the number of deleted lines of code.
func deleteDeclarations(t *testing.T, source []byte, names []string) (rest []byte, lines int) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	before, missing := countCode(source), slices.Clone(names)
	rest = slices.Clone(source)
	blank := func(from, to token.Pos) { // offsets stay
		for i := files.Position(from).Offset; i < files.Position(to).Offset; i++ {
			if rest[i] != '\n' {
				rest[i] = ' '
			}
		}
	}
	used := map[string]bool{}
	for _, declaration := range file.Decls {
		name, doc := nameOf(declaration)
		if i := slices.Index(missing, name); i >= 0 {
			missing = slices.Delete(missing, i, i+1)
			blank(declaration.Pos(), declaration.End())
			if doc != nil {
				blank(doc.Pos(), doc.End())
			}
			continue
		}
		ast.Inspect(declaration, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok {
				if identifier, ok := selector.X.(*ast.Ident); ok {
					used[identifier.Name] = true
				}
			}
			return true
		})
	}
	for _, spec := range file.Imports {
		name, _ := strconv.Unquote(spec.Path.Value) // the parser accepts only literals
		if name = path.Base(name); spec.Name != nil {
			name = spec.Name.Name
		}
		if !used[name] && name != "_" {
			blank(spec.Pos(), spec.End())
		}
	}
	rest, err = format.Source(rest)
	if err != nil || len(missing) > 0 {
		t.Fatalf("the file has no %q, or the rest is invalid: %v", missing, err)
	}
	return rest, before - countCode(rest)
}

// nameOf returns the name of a function, a method or a single type, and its comment.
func nameOf(declaration ast.Decl) (name string, doc *ast.CommentGroup) {
	switch d := declaration.(type) {
	case *ast.GenDecl:
		if s, ok := d.Specs[0].(*ast.TypeSpec); ok && len(d.Specs) == 1 {
			return s.Name.Name, d.Doc
		}
	case *ast.FuncDecl:
		if d.Recv == nil {
			return d.Name.Name, d.Doc
		}
		receiver := d.Recv.List[0].Type
		if pointer, ok := receiver.(*ast.StarExpr); ok {
			receiver = pointer.X
		}
		return receiver.(*ast.Ident).Name + "." + d.Name.Name, d.Doc
	}
	return "", nil
}

// countCode returns the number of lines with code, without comments.
func countCode(source []byte) int {
	var tokens scanner.Scanner
	files, lines := token.NewFileSet(), map[int]bool{}
	file := files.AddFile("", files.Base(), len(source))
	tokens.Init(file, source, nil, 0)
	for {
		position, kind, text := tokens.Scan()
		if kind == token.EOF {
			return len(slices.Collect(maps.Keys(lines)))
		}
		if text != "\n" {
			lines[file.Line(position)] = true
		}
	}
}
