package guard

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

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
		{"k8s.io/client-go/informers",
			"typed informers import the typed clients"},
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
	most: 220,
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
