package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"gotest.tools/gotestsum/testjson"

	"github.com/crdcache/crdcache/integration/internal/document"
)

func main() {
	server := flag.String("server", "", "the server of the tests, for the heading of the section")
	path := flag.String("document", "", "the document that has, or gets, the section; empty writes none")
	root := flag.String("versions", "", "test the modules of the repository in this folder with all versions of Kubernetes' modules")
	prefix := flag.String("only", "v", "the prefix of the versions to test, such as v0.36")
	platforms := flag.String("platforms", "", "check the module in the working directory for these platforms")
	flag.Parse()
	var err error
	if *platforms != "" {
		err = checkPlatforms(strings.Fields(*platforms))
	} else if *root != "" {
		err = testVersions(context.Background(), *root, *prefix, *path, os.Stderr)
	} else {
		err = run(*server, *path, os.Stdin, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(server, path string, in io.Reader, out io.Writer) error {
	results, err := testjson.ScanTestOutput(testjson.ScanConfig{Stdout: in, Handler: progress{out}})
	if err != nil {
		return err
	}
	testjson.PrintSummary(out, results, testjson.SummarizeFailed|testjson.SummarizeErrors)
	if failed := len(results.Failed()) + len(results.Errors()); failed > 0 || results.Total() == 0 {
		return fmt.Errorf("%d of %d tests failed, or did not build: nothing is written", failed,
			results.Total())
	}
	if path == "" {
		return nil
	}
	return document.WriteSection(path, server, section(results))
}

// progress reports finished packages.
type progress struct{ out io.Writer }

// Event implements testjson.EventHandler.
func (p progress) Event(event testjson.TestEvent, _ *testjson.Execution) error {
	if !event.PackageEvent() || !event.Action.IsTerminal() {
		return nil
	}
	_, err := fmt.Fprintf(p.out, "%s\t%s\t%.0f s\n", event.Action, event.Package, event.Elapsed)
	return err
}

// Err implements testjson.EventHandler.
func (p progress) Err(text string) error {
	_, err := fmt.Fprintln(p.out, text)
	return err
}
