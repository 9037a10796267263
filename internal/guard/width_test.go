package guard

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"path"
	"strconv"
	"strings"
	"testing"
)

// maxColumns is the width of a line of Go. A tab counts as four columns. The text of string literals and of
// the expected output of examples does not count, because it cannot be broken.
const maxColumns = 110

// wideLines returns the numbers of the lines that exceed maxColumns.
func wideLines(source []byte) []int {
	widths := lineWidths(string(source))
	var file token.FileSet
	f := file.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(f, source, nil, scanner.ScanComments)
	output := false
	for {
		pos, tok, literal := s.Scan()
		line := f.Line(pos) - 1
		switch tok {
		case token.EOF:
			return linesOverLimit(widths)
		case token.STRING:
			for i, part := range strings.Split(literal, "\n") {
				widths[line+i] -= countColumns(part)
			}
			output = false
		case token.COMMENT:
			output = output || strings.HasPrefix(literal, "// Output:")
			if output {
				widths[line] = 0
			}
		default:
			output = false
		}
	}
}

func lineWidths(source string) []int {
	var widths []int
	for line := range strings.SplitSeq(source, "\n") {
		widths = append(widths, countColumns(strings.TrimSuffix(line, "\r")))
	}
	return widths
}

func countColumns(text string) int { return len([]rune(strings.ReplaceAll(text, "\t", "    "))) }

// linesOverLimit returns the numbers of the lines with more than maxColumns columns.
func linesOverLimit(widths []int) []int {
	var lines []int
	for i, width := range widths {
		if width > maxColumns {
			lines = append(lines, i+1)
		}
	}
	return lines
}

func TestLinesAreNarrow(t *testing.T) {
	var violations []string
	for _, name := range files(t) {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		for _, line := range wideLines(readFile(t, name)) {
			violations = append(violations, fmt.Sprintf("%s:%d has more than %d columns", name, line, maxColumns))
		}
	}
	reportViolations(t, violations)
}

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
