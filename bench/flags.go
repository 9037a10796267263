package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/crdcache/crdcache/bench/internal/run"
)

// options are those of the command line.
type options struct {
	plan   run.PlanOptions
	runner run.Options

	guard           bool
	planOnly        bool
	report, results string
	from            string
}

// parse reads the command line. It writes the usage to stderr where it is asked for, and where there is
// something wrong.
func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{plan: run.DefaultPlanOptions()}
	// The short form changes the defaults of the other flags, so it has to be known before them.
	if slices.Contains(args, "-ci") || slices.Contains(args, "--ci") {
		o.plan = run.CIPlanOptions()
	}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.guard, "ci", false, "measure little, and fail where a promise is broken by a wide margin")
	f.BoolVar(&o.planOnly, "plan", false, "only print what would be measured and how long that takes")
	f.StringVar(&o.from, "from", "", "measure nothing: take the results of an earlier run from this `file`")
	f.StringVar(&o.report, "report", "", "write a report in Markdown to this `file`")
	f.StringVar(&o.results, "results", "", "write all figures in JSON to this `file`")
	f.Var((*integers)(&o.plan.Sizes), "sizes", "`numbers` of objects of 2 KB to fill caches with")
	f.Var((*integers)(&o.plan.LargeSizes), "large", "`numbers` of objects of 10 KB")
	f.Var((*names)(&o.plan.Families), "families", "types of objects of 10 KB, made up, to fill caches with")
	f.IntVar(&o.plan.FamilyObjects, "family-objects", o.plan.FamilyObjects, "how many objects of each of these types")
	f.Var((*integers)(&o.plan.Types), "types", "`numbers` of types to keep caches of")
	f.IntVar(&o.plan.PerType, "per-type", o.plan.PerType, "how many objects each of many types has")
	f.DurationVar(&o.plan.Idle, "idle", o.plan.Idle, "for how long to watch many types while nothing happens")
	f.Var((*names)(&o.plan.Subjects), "subjects", "caches to measure")
	f.Var((*names)(&o.plan.Experiments), "experiments", "experiments to make (default all)")
	f.IntVar(&o.plan.Rounds, "rounds", o.plan.Rounds, "how often to measure what does not take long; the median counts")
	f.IntVar(&o.plan.Judged, "judged-rounds", o.plan.Judged, "how often to measure at least what promises of processor time are judged by")
	f.IntVar(&o.plan.Updates, "updates", o.plan.Updates, "how many updates to make")
	f.IntVar(&o.plan.Burst, "burst", o.plan.Burst, "how many updates to make that arrive at once")
	f.IntVar(&o.plan.UpdateObjects, "update-objects", o.plan.UpdateObjects, "how many objects there are meanwhile")
	f.Var((*integers)(&o.plan.Scales), "scales", "`numbers` of objects of the synthetic server to fill caches with")
	f.IntVar(&o.plan.FastUpdates, "fast-updates", o.plan.FastUpdates, "how many updates the synthetic server makes, 5,000 in a second")
	f.IntVar(&o.plan.SlowUpdates, "slow-updates", o.plan.SlowUpdates, "how many updates the synthetic server makes, 200 in a second")
	f.IntVar(&o.plan.ListObjects, "list-objects", o.plan.ListObjects, "how many objects to list")
	f.IntVar(&o.plan.ReadObjects, "read-objects", o.plan.ReadObjects, "how many objects to read and to index")
	f.IntVar(&o.plan.DumpObjects, "dump-objects", o.plan.DumpObjects, "how many objects to print")
	f.IntVar(&o.plan.ManagedObjects, "managed-objects", o.plan.ManagedObjects, "how many objects managers reconcile")
	f.IntVar(&o.plan.RestartObjects, "restart-objects", o.plan.RestartObjects, "how many objects a process has that is begun anew")
	f.BoolVar(&o.plan.ManyTypes, "many-types", o.plan.ManyTypes, "have managers reconcile objects of many types too, and begin processes anew that follow them")
	f.IntVar(&o.plan.ShardedObjects, "sharded-objects", o.plan.ShardedObjects, "how many objects replicas share; 0 for none")
	f.DurationVar(&o.plan.Budget, "budget", o.plan.Budget, "processor time for each small operation")
	f.StringVar(&o.runner.Profiles, "profiles", "", "an existing `folder` for the processor profiles of all processes that measure, and heap and goroutine profiles of many types")
	f.StringVar(&o.runner.Sandbox, "sandbox", "../bin/sandbox", "the sandbox `program`")
	f.StringVar(&o.runner.Kubectl, "kubectl", "../bin/kubectl", "the kubectl `program`")
	f.StringVar(&o.runner.Crdcache, "crdcache", "../bin/crdcache", "the crdcache `program`")
	o.runner.Progress = stderr
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("there is no argument %q; see -help", f.Arg(0))
	}
	return o, nil
}

// integers is a flag of numbers with commas between them.
type integers []int

// String implements flag.Value.
func (l *integers) String() string {
	parts := make([]string, len(*l))
	for i, n := range *l {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, ",")
}

// Set implements flag.Value.
func (l *integers) Set(text string) error {
	*l = nil
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not a number of objects", part)
		}
		*l = append(*l, n)
	}
	return nil
}

// names is a flag of names with commas between them.
type names []string

// String implements flag.Value.
func (l *names) String() string { return strings.Join(*l, ",") }

// Set implements flag.Value.
func (l *names) Set(text string) error {
	*l = nil
	for part := range strings.SplitSeq(text, ",") {
		if part != "" {
			*l = append(*l, part)
		}
	}
	return nil
}
