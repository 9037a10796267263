package guard

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// inText matches names with a package or in mixed case.
	inText   = regexp.MustCompile(`\b[a-z]\w*\.[A-Z]\w*|\b[A-Za-z]\w*[a-z0-9][A-Z]\w*`)
	codeLine = regexp.MustCompile(`(?m)^\t.*`)
	word     = regexp.MustCompile(`\w+`)
	// subject matches the beginning of a comment that names its declaration.
	subject = regexp.MustCompile(`^([a-z]\w*) (?:are|\w+s) `)
)

// foreignNames occur in comments but not in our code.
var foreignNames = strings.Fields(`apiVersion creationTimestamp deletionTimestamp dnsNames dryRun
	fieldValidation generateName isInInitialList issuerRef issuerRefName listType managedFields parentRefs
	readySince secretName secretRef shardSelector GitHub PowerShell TestSomething`)

// staleNames lists the names in comments that do not exist, and comments that begin with the name of
// something else. An unexported name exists in its own package, an exported one in all packages.
func staleNames(packages []sourcePackage) (violations []string) {
	fset := token.NewFileSet()
	exported, folders := map[string]bool{}, map[string]bool{}
	for _, name := range foreignNames {
		exported[name] = true
	}
	files, own := make([][]*ast.File, len(packages)), make([]map[string]bool, len(packages))
	for i, p := range packages {
		folders[path.Base(p.dir)], own[i] = true, map[string]bool{}
		add := func(name string) {
			own[i][name] = true
			exported[name] = exported[name] || ast.IsExported(name)
		}
		for name, source := range p.files {
			file, err := parser.ParseFile(fset, p.dir+"/"+name, source, parser.ParseComments)
			if err != nil || ast.IsGenerated(file) {
				continue // the compiler reports an error
			}
			files[i] = append(files[i], file)
			check := func(doc *ast.CommentGroup, names ...*ast.Ident) {
				match := subject.FindStringSubmatch(doc.Text())
				if match != nil && !slices.ContainsFunc(names,
					func(id *ast.Ident) bool { return id.Name == match[1] }) {
					violations = append(violations, fmt.Sprintf("%v: the comment begins with %s, which is another name",
						fset.Position(doc.Pos()), match[1]))
				}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Field:
					check(n.Doc, n.Names...)
				case *ast.ValueSpec:
					check(n.Doc, n.Names...)
				case *ast.FuncDecl:
					check(n.Doc, n.Name)
				case *ast.GenDecl:
					if spec, ok := n.Specs[0].(*ast.ValueSpec); ok && len(n.Specs) == 1 {
						check(n.Doc, spec.Names...)
					}
				case *ast.Ident:
					add(n.Name)
				case *ast.BasicLit:
					for _, name := range word.FindAllString(n.Value, -1) {
						add(name)
					}
				}
				return true
			})
		}
	}
	for i := range packages {
		exists := func(name string) bool { return own[i][name] || exported[name] }
		for _, file := range files[i] {
			for _, group := range file.Comments {
				for _, name := range inText.FindAllString(codeLine.ReplaceAllString(group.Text(), ""), -1) {
					qualifier, member, qualified := strings.Cut(name, ".")
					if !qualified {
						member = name
					} else if !folders[qualifier] {
						continue // another project's package, or a variable
					}
					if !exists(member) && !exists(strings.TrimSuffix(member, "s")) {
						violations = append(violations, fmt.Sprintf("%v: the comment names %s, which does not "+
							"exist; qualify foreign names", fset.Position(group.Pos()), name))
					}
				}
			}
		}
	}
	slices.Sort(violations)
	return violations
}

func TestNamesInComments(t *testing.T) {
	reportViolations(t, staleNames(sourcePackages(t)))
}
