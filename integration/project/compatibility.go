package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"gotest.tools/gotestsum/testjson"

	"github.com/crdcache/crdcache/integration/harness"
)

// compatibility implements the command compatibility.
func compatibility(_ context.Context, flags *flag.FlagSet, args []string) error {
	server := flags.String("server", "", "the server of the tests, for the heading of the section")
	path := flags.String("document", "", "the document that has, or gets, the section; empty writes none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return summarize(*server, *path, os.Stdin, os.Stderr)
}

// summarize writes a section about the test events of in, unless a test failed.
func summarize(server, path string, in io.Reader, out io.Writer) error {
	results, err := testjson.ScanTestOutput(testjson.ScanConfig{Stdout: in, Handler: progress{out}})
	if err != nil {
		return err
	}
	testjson.PrintSummary(out, results, testjson.SummarizeFailed|testjson.SummarizeErrors)
	if failed := len(results.Failed()) + len(results.Errors()); failed > 0 || results.Total() == 0 {
		return fmt.Errorf("%d of %d tests failed, or did not build: the document is unchanged", failed,
			results.Total())
	}
	if path == "" {
		return nil
	}
	return harness.WriteSection(path, server, section(results))
}

// progress reports finished packages.
type progress struct{ out io.Writer }

func (p progress) Event(event testjson.TestEvent, _ *testjson.Execution) error {
	if !event.PackageEvent() || !event.Action.IsTerminal() {
		return nil
	}
	_, err := fmt.Fprintf(p.out, "%s\t%s\t%.0f s\n", event.Action, event.Package, event.Elapsed)
	return err
}

func (p progress) Err(text string) error {
	_, err := fmt.Fprintln(p.out, text)
	return err
}
