package guard

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// modulePath is the root module's path, the prefix of all import paths of ours.
const modulePath = "github.com/crdcache/crdcache"

// commandModule is the folder of the command, a module of its own.
const commandModule = "cmd/crdcache"

// root is the path of the repository's root, relative to this package.
const root = "../.."

// goCommand runs the go command in dir below the root and returns its output. The workspace is off, as for
// users of the module. The platform is fixed, because imports depend on it.
func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = filepath.Join(root, dir)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, out, exit.Stderr)
		}
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// files lists the tracked files of the repository, slash-separated and relative to the root. Without git,
// it lists all files except build output.
func files(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "ls-files", "-z")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil {
		tracked := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if slices.Contains(tracked, "go.mod") {
			// A deleted file is listed until its deletion is committed.
			return slices.DeleteFunc(tracked, func(name string) bool {
				_, err := os.Lstat(filepath.Join(root, name))
				return err != nil
			})
		}
	}
	return walkFiles(t)
}

// walkFiles lists the files below the root without git.
func walkFiles(t *testing.T) []string {
	t.Helper()
	var found []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", ".cache", "bin"}, name):
			return fs.SkipDir
		case entry.Type().IsRegular():
			found = append(found, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// readFile returns a file's content by its name relative to the root.
func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// reportViolations fails the test for every violation.
func reportViolations(t *testing.T, violations []string) {
	t.Helper()
	for _, v := range violations {
		t.Error(v)
	}
}

// isWithin reports whether path is dir or lies below it; both are slash-separated.
func isWithin(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// expectViolations compares violations with the expected ones. Each element of want is a part of the
// violation at the same position.
func expectViolations(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d violations, want %d: %q", len(got), len(want), got)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("violation %d is %q, want it to contain %q", i, got[i], want[i])
		}
	}
}

// TestWorkflows verifies that actions are pinned by commit, and that dependabot updates every module.
func TestWorkflows(t *testing.T) {
	unpinned := regexp.MustCompile(`uses: [^.][^@]*@(?:[^0-9a-f]|.{1,39}(?:[^0-9a-f]|$)).*`)
	updates := string(readFile(t, ".github/dependabot.yml"))
	for _, name := range files(t) {
		if strings.HasPrefix(name, ".github/workflows/") {
			for _, use := range unpinned.FindAllString(string(readFile(t, name)), -1) {
				t.Errorf("%s: pin the action by commit: %s", name, use)
			}
		}
		folder, isModule := strings.CutSuffix("/"+name, "/go.mod")
		if isModule && !strings.Contains(updates, `"`+cmp.Or(folder, "/")+`"`) {
			t.Errorf(".github/dependabot.yml lacks the module %s", name)
		}
	}
}

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
