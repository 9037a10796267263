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
	"regexp"
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

// globalLogCall finds calls that log to klog's global logger.
var globalLogCall = regexp.MustCompile(`\bklog\.(Info|Warning|Error|Fatal|Exit|V)\w*\(`)

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
		for _, call := range globalLogCall.FindAll(source, -1) {
			violations = append(violations, fmt.Sprintf("%s/%s calls %s: use klog.FromContext", p.dir, name, call))
		}
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

// layer lists the folders that may directly import an expensive package. Tests may import anything.
type layer struct {
	path   string   // the package, with everything below it
	only   []string // the folders that can import it, with everything below them
	reason string
}

// enginePackages are the folders that depend on how objects are stored.
var enginePackages = []string{"dynamicinformer", "internal/informer", "internal/store", "internal/packed",
	"internal/codec", "internal/requests", "internal/persist", "internal/snapshot"}

var layers = []layer{
	{"github.com/spf13/cobra", []string{"cmd"}, "commands live in the command line"},
	{"github.com/spf13/pflag", []string{"cmd"}, "flags live in the command line"},
	{"k8s.io/cli-runtime", []string{"cmd"}, "printers and kubeconfig flags live in the command line"},
	{"k8s.io/client-go/informers", []string{"adapters/compat"},
		"only the drop-in for client-go's dynamicinformer has its types in signatures"},
	{"k8s.io/client-go/discovery", []string{"adapters/compat", "cmd"},
		"it brings every API group; our discovery package reads the same documents without"},
	{"k8s.io/client-go/kubernetes", []string{"cmd", "adapters/shard"},
		"typed clients have no place in a dynamic library; adapters/shard uses only that of Leases"},
	{"k8s.io/client-go/tools/leaderelection", nil, "it brings every API group"},
	{modulePath + "/internal/store", enginePackages,
		"dynamicinformer.Snapshot is the public form of a cache's content"},
	{modulePath + "/internal/packed", enginePackages,
		"dynamicinformer.PackedObject is the public form of an object"},
	{modulePath + "/internal/codec", enginePackages, "the wire format is the engine's business"},
	{modulePath + "/cmd", []string{"cmd"}, "nothing depends on the command line"},
}

// forbiddenImports lists direct imports that a layer forbids.
func forbiddenImports(layers []layer, packages []dependency) []string {
	var violations []string
	for _, p := range packages {
		folder := strings.TrimPrefix(p.path, modulePath+"/")
		for _, imported := range p.imports {
			for _, l := range layers {
				allowed := slices.ContainsFunc(l.only, func(dir string) bool { return isWithin(folder, dir) })
				if isWithin(imported, l.path) && !allowed {
					violations = append(violations, fmt.Sprintf("%s imports %s: %s; only %v may", folder,
						imported, l.reason, l.only))
				}
			}
		}
	}
	return violations
}

// directImports lists the packages of the library and of the command with what they import.
func directImports(t *testing.T) []dependency {
	t.Helper()
	var packages []dependency
	for _, module := range []string{".", commandModule} {
		out := goCommand(t, module, "list", "-e", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
		for line := range strings.Lines(out) {
			if fields := strings.Fields(line); len(fields) > 0 {
				packages = append(packages, dependency{fields[0], fields[1:]})
			}
		}
	}
	return packages
}

func TestLayers(t *testing.T) {
	packages := directImports(t)
	if len(packages) < 3 {
		t.Fatalf("the go command lists only %d packages of ours", len(packages))
	}
	reportViolations(t, forbiddenImports(layers, packages))
}

// importBudget limits the cost of importing one of our packages.
type importBudget struct {
	pkg    string
	most   int // maximum number of non-standard packages in the import graph, including the package itself
	banned []bannedImport
}

// bannedImport forbids a package and all packages below its path, for a reason.
type bannedImport struct {
	path   string
	reason string
}

// libraryBudget limits the main package of the library. client-go's dynamic client and tools/cache are 118
// packages. The library adds 18 packages of this module, package sharding, and 4 of klauspost/compress,
// which decompresses responses in half the time of Go's gzip.
var libraryBudget = importBudget{
	pkg:  modulePath + "/dynamicinformer",
	most: 141,
	banned: []bannedImport{
		{"github.com/spf13/cobra", "a library has no commands"},
		{"github.com/spf13/pflag", "a library must not add flags to a program"},
		{"k8s.io/cli-runtime", "printers and kubeconfig flags belong to the command line"},
		{"github.com/prometheus",
			"the program chooses its metrics library, and this one registers global collectors"},
		{"k8s.io/component-base", "imports Prometheus and pflag"},
		{"k8s.io/api", "dynamic informers need no Go types of API groups"},
		{"k8s.io/apiextensions-apiserver", "CRDs are read as unstructured objects"},
		{"k8s.io/client-go/kubernetes", "the typed clients and their scheme import all API groups"},
		{"k8s.io/client-go/informers", "typed informers import the typed clients"},
		{"k8s.io/client-go/listers", "typed listers import all API groups"},
		{"k8s.io/client-go/applyconfigurations", "typed apply configurations import all API groups"},
		{"k8s.io/client-go/discovery", "imports kubernetes/scheme, about 140 packages"},
		{"k8s.io/client-go/restmapper", "imports client-go/discovery"},
		{modulePath + "/discovery",
			"the factory takes it as an interface; programs with fixed types need none"},
		{modulePath + "/cmd", "a library has no commands"},
		{modulePath + "/adapters/shard",
			"the program decides which shards it holds, and Leases import all API groups"},
		{"sigs.k8s.io/controller-runtime", "the adapter module imports this module, not the reverse"},
	},
}

// commandBudget keeps the program small and its build fast.
var commandBudget = importBudget{
	pkg:  modulePath + "/cmd/crdcache/internal/cli",
	most: 236,
	banned: []bannedImport{
		{"k8s.io/cli-runtime/pkg/genericclioptions",
			"imports kustomize, OpenAPI and all API groups: 240 packages and 50 MB"},
		{"k8s.io/api/core", "the command reads objects without Go types"},
		{"k8s.io/client-go/discovery", "imports kubernetes/scheme, about 140 packages"},
		{"k8s.io/kubectl", "imports all of these"},
	},
}

// dependency is one package of an import graph.
type dependency struct {
	path    string
	imports []string
}

// budgetViolations lists violations in the import graph of b.pkg, without the standard library.
func budgetViolations(b importBudget, graph []dependency) []string {
	var violations []string
	if len(graph) > b.most {
		violations = append(violations,
			fmt.Sprintf("%s costs %d non-standard packages, at most %d are allowed", b.pkg,
				len(graph), b.most))
	}
	for _, d := range graph {
		for _, ban := range b.banned {
			if isWithin(d.path, ban.path) {
				violations = append(violations, fmt.Sprintf("%s reaches %s: %s\n\t%s",
					b.pkg, d.path, ban.reason, strings.Join(importChain(graph, b.pkg, d.path), "\n\t→ ")))
			}
		}
	}
	return violations
}

// importChain returns a shortest chain of imports between two packages.
func importChain(graph []dependency, from, to string) []string {
	imports := map[string][]string{}
	for _, d := range graph {
		imports[d.path] = d.imports
	}
	previous := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == to {
			break
		}
		for _, next := range imports[queue[0]] {
			if _, seen := previous[next]; !seen {
				previous[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	var chain []string
	for at := to; at != ""; at = previous[at] {
		chain = append(chain, at)
	}
	slices.Reverse(chain)
	return chain
}

// importGraph returns all non-standard packages that pkg imports, including itself, from the go command.
func importGraph(t *testing.T, pkg string) []dependency {
	t.Helper()
	module := "."
	if isWithin(pkg, modulePath+"/"+commandModule) {
		module = commandModule
	}
	out := goCommand(t, module, "list", "-deps", "-f",
		`{{if not .Standard}}{{.ImportPath}} {{join .Imports " "}}{{end}}`, pkg)
	var graph []dependency
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 0 {
			graph = append(graph, dependency{fields[0], fields[1:]})
		}
	}
	return graph
}

func TestLibraryImportBudget(t *testing.T) {
	graph := importGraph(t, libraryBudget.pkg)
	t.Logf("%s costs %d of %d non-standard packages", libraryBudget.pkg, len(graph), libraryBudget.most)
	reportViolations(t, budgetViolations(libraryBudget, graph))
}

func TestCommandImportBudget(t *testing.T) {
	graph := importGraph(t, commandBudget.pkg)
	t.Logf("%s costs %d of %d non-standard packages", commandBudget.pkg, len(graph), commandBudget.most)
	reportViolations(t, budgetViolations(commandBudget, graph))
}
