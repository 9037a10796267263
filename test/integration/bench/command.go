package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/crdcache/crdcache/test/integration/bench/internal/report"
)

// Exit codes.
const (
	exitOK = iota
	// exitFailed means that a measurement failed, or that a promise misses its margin.
	exitFailed
	exitUsage
	exitInterrupted = 130
)

// errFailed is returned after the failures have been printed.
var errFailed = errors.New("failed")

// command runs the benchmark and returns the exit code.
func command(args []string, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "bench:", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends this process at once
	err = o.run(ctx, stderr)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "bench: interrupted; no file was written")
		return exitInterrupted
	case errors.Is(err, errFailed):
		return exitFailed
	case err != nil:
		fmt.Fprintln(stderr, "bench:", err)
		return exitFailed
	}
	return exitOK
}

// run measures or reads a result, writes it, and checks the promises.
func (o *options) run(ctx context.Context, stderr io.Writer) error {
	r, err := o.measure(ctx, stderr)
	if err != nil || r == nil {
		return err
	}
	if o.results != "" && o.from == "" {
		if err := r.Write(o.results); err != nil {
			return err
		}
		fmt.Fprintln(stderr, "wrote", o.results)
	}
	if o.report != "" {
		if err := report.WriteMarkdown(o.report, r); err != nil {
			return err
		}
		fmt.Fprintln(stderr, "wrote", o.report)
	}
	outcomes := report.Judge(r)
	report.WriteOutcomes(stderr, outcomes)
	failed := len(r.Failures) > 0
	if broken := report.BrokenPromises(outcomes); o.ci && len(broken) > 0 {
		failed = true
		fmt.Fprintln(stderr, "\nmargin missed, or not measured:")
		report.WriteOutcomes(stderr, broken)
	}
	for _, failure := range r.Failures {
		fmt.Fprintln(stderr, "measurement failed:", failure)
	}
	if failed {
		return errFailed
	}
	return nil
}

// measure returns a result, or nil if -plan is set.
func (o *options) measure(ctx context.Context, stderr io.Writer) (*report.Result, error) {
	if o.from != "" {
		return report.ReadResult(o.from)
	}
	p, err := readPlans()[map[bool]string{true: "ci", false: "full"}[o.ci]].Choose(o.choice)
	if err != nil {
		return nil, err
	}
	if o.planOnly {
		for _, step := range p {
			fmt.Fprintf(stderr, "%s: %d rounds of %v\n", step, step.Rounds, step.Subjects)
		}
		return nil, nil
	}
	r, err := p.Run(ctx, o.runner)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(stderr, "measured in %v\n", r.Took)
	return r, nil
}
