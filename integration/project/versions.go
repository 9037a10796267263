package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"gotest.tools/gotestsum/testjson"

	"github.com/crdcache/crdcache/integration/harness"
)

// versions are releases of Kubernetes' modules and of controller-runtime that belong together. The first are
// the minimum requirements.
var versions = []struct{ kubernetes, runtime string }{
	{"v0.35.0", "v0.23.0"},
	{"v0.36.6", "v0.24.1"},
	{"v0.37.2", "v0.25.2"},
}

// staging are the modules of Kubernetes that have the same version.
var staging = []string{"api", "apiextensions-apiserver", "apimachinery", "apiserver", "cli-runtime", "client-go",
	"component-base", "kms"}

// suites are the tests that run with each version; a folder is that of a module.
var suites = []struct {
	name, folder string
	packages     []string
}{
	{"library and command", ".", []string{"./..."}},
	{"`metrics`", "metrics", []string{"./..."}},
	{"`storage/disk`", "storage/disk", []string{"./..."}},
	{"`controllerruntime`", "controllerruntime", []string{"./..."}},
	{"conformance", "integration", []string{"./conformance"}},
	{"controller-runtime's suite", "integration", []string{"./controllerruntime"}},
}

// testVersions runs all suites in the repository with all versions, and writes a table of the passed tests.
func testVersions(ctx context.Context, flags *flag.FlagSet, args []string) error {
	root := flags.String("root", "..", "the folder of the repository")
	path := flags.String("document", "", "the document that has, or gets, the table; empty writes none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	out := os.Stderr
	var table strings.Builder
	table.WriteString("| k8s.io | controller-runtime |")
	rule := "\n|---|---|"
	for _, s := range suites {
		table.WriteString(" " + s.name + " |")
		rule += "--:|"
	}
	table.WriteString(rule + "\n")
	failed := 0
	for _, v := range versions {
		fmt.Fprintf(&table, "| %s | %s |", v.kubernetes[1:], v.runtime[1:])
		for _, s := range suites {
			fmt.Fprintf(out, "=== %s with k8s.io %s, controller-runtime %s\n", s.name, v.kubernetes, v.runtime)
			tag := "" // for tests of newer APIs
			if v != versions[len(versions)-1] {
				tag = "oldkubernetes"
			}
			results, err := testWith(ctx, filepath.Join(*root, s.folder), s.packages, pins(v.kubernetes,
				v.runtime), tag, out)
			if err != nil {
				return err
			}
			testjson.PrintSummary(out, results, testjson.SummarizeFailed|testjson.SummarizeErrors)
			bad := len(results.Failed()) + len(results.Errors())
			if results.Total() == 0 {
				bad++
			}
			failed += bad
			fmt.Fprintf(&table, " %d |", results.Total()-len(results.Skipped())-len(results.Failed()))
		}
		table.WriteByte('\n')
	}
	fmt.Fprint(out, table.String())
	if failed > 0 {
		return fmt.Errorf("%d tests failed, or did not build: the document is unchanged", failed)
	}
	if *path == "" {
		return nil
	}
	return harness.WriteSection(*path, "Versions", table.String())
}

// pins returns replacements that select exact versions, also below the requirements of a module.
func pins(kubernetes, runtime string) []string {
	edits := []string{"-replace=sigs.k8s.io/controller-runtime=sigs.k8s.io/controller-runtime@" + runtime}
	for _, name := range staging {
		edits = append(edits, fmt.Sprintf("-replace=k8s.io/%s=k8s.io/%[1]s@%s", name, kubernetes))
	}
	return edits
}

// testWith runs the tests of packages of the module in a folder, with an edited copy of its go.mod.
func testWith(ctx context.Context, folder string, packages, edits []string, tag string,
	out io.Writer) (*testjson.Execution, error) {
	temporary, err := os.MkdirTemp("", "versions")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary)
	modfile := filepath.Join(temporary, "go.mod")
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(temporary, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	command := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(ctx, "go", args...)
		c.Dir = folder
		// Tests run the go command, too.
		c.Env = append(os.Environ(), "GOWORK=off",
			"GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod -modfile="+modfile)
		return c
	}
	if err := command(append(append([]string{"mod", "edit"}, edits...), modfile)...).Run(); err != nil {
		return nil, fmt.Errorf("go mod edit: %w", err)
	}
	list, err := command(append([]string{"list"}, packages...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	// The guards check go.mod files and sources, which do not depend on versions.
	tested := slices.DeleteFunc(strings.Fields(string(list)), func(name string) bool {
		return strings.Contains(name, "/internal/guard")
	})
	test := command(append([]string{"test", "-json", "-count=1", "-timeout=30m", "-tags=" + tag}, tested...)...)
	test.Stderr = out
	events, err := test.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := test.Start(); err != nil {
		return nil, err
	}
	results, err := testjson.ScanTestOutput(testjson.ScanConfig{Stdout: events, Handler: progress{out}})
	_ = test.Wait() // the results have the failures
	return results, err
}
