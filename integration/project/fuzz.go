package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/crdcache/crdcache/integration/harness"
)

// fuzzOptions are the options of the command fuzz.
type fuzzOptions struct {
	duration          time.Duration
	parallel          int
	executions        int64
	only              string
	results, document string
	modules           []string
}

func fuzz(ctx context.Context, flags *flag.FlagSet, args []string) error {
	o := fuzzOptions{}
	flags.DurationVar(&o.duration, "time", 20*time.Second, "how long each test runs at a time")
	flags.IntVar(&o.parallel, "parallel", 0, "how many processes a test runs in; 0: one for each processor")
	flags.Int64Var(&o.executions, "executions", 0,
		"repeat all tests until the results have this many executions; 0: run them once")
	flags.StringVar(&o.only, "run", "",
		"the tests that run: those whose package and name, with a space between, this regular expression matches; empty: all")
	flags.StringVar(&o.results, "results", "",
		"the file with the results of all runs, which this run is added to; empty: this run alone")
	flags.StringVar(&o.document, "document", "",
		"the document whose section is written after each round; empty: none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.modules = flags.Args()
	return o.run(ctx)
}

// run repeats all tests until the number of executions is reached. A failed test is repeated in the next
// round.
func (o fuzzOptions) run(ctx context.Context) error {
	merged, err := readResults(o.results)
	if err != nil {
		return err
	}
	targets, err := findAllTargets(ctx, o.modules, o.only)
	if err != nil {
		return err
	}
	programs, remove, err := newPrograms(ctx)
	if err != nil {
		return err
	}
	defer remove()
	failed := map[target]error{}
	for first := true; first || merged.executions() < o.executions; first = false {
		for _, t := range targets {
			result, err := programs.fuzz(ctx, t, o.duration, o.parallel)
			if ctx.Err() != nil {
				return errors.Join(ctx.Err(), merged.write(o.results))
			}
			if err != nil {
				failed[t] = fmt.Errorf("%s in %s: %w", t.name, t.path, err)
				fmt.Fprintln(os.Stderr, failed[t])
			}
			merged.add(t, result)
			if err := merged.write(o.results); err != nil {
				return err
			}
		}
		fmt.Printf("%s: %d executions so far\n", time.Now().Format(time.TimeOnly), merged.executions())
		if o.document != "" {
			if err := harness.WriteSection(o.document, "Fuzzing", merged.section()); err != nil {
				return err
			}
		}
	}
	return errors.Join(slices.Collect(maps.Values(failed))...)
}
