package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

// options are the flags of the command.
type options struct {
	choice Choice
	runner runnerOptions

	ci              bool
	planOnly        bool
	report, results string
	from            string
}

// parse reads the command line. It writes the usage to stderr for -help and for invalid flags.
func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.ci, "ci", false, "run the short plan, and fail if a documented performance claim is not met")
	f.BoolVar(&o.planOnly, "plan", false, "print the plan and exit")
	f.StringVar(&o.from, "from", "",
		"read the results of an earlier run from this `file` instead of measuring")
	f.StringVar(&o.report, "report", "", "write a report in Markdown to this `file`")
	f.StringVar(&o.results, "results", "", "write all figures as JSON to this `file`")
	f.Var((*names)(&o.choice.Experiments), "experiments", "run only these experiments, separated by commas")
	f.Var((*names)(&o.choice.Subjects), "subjects", "measure only these subjects, separated by commas")
	f.IntVar(&o.choice.Objects, "objects", 0, "`number` of objects, instead of the plan's")
	f.IntVar(&o.choice.Rounds, "rounds", 0, "`number` of rounds, instead of the plan's")
	f.StringVar(&o.runner.profiles, "profiles", "",
		"write profiles of the measuring processes to this existing `folder`")
	f.StringVar(&o.runner.sandbox, "sandbox", "../../../bin/sandbox", "the sandbox `program`")
	f.StringVar(&o.runner.next, "next", "../../../bin/bench-next",
		"this `program`, linked with the next version of client-go")
	f.StringVar(&o.runner.kubectl, "kubectl", "../../../bin/kubectl", "the kubectl `program`")
	f.StringVar(&o.runner.crdcache, "crdcache", "../../../bin/crdcache", "the crdcache `program`")
	o.runner.progress = stderr
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q; see -help", f.Arg(0))
	}
	if o.choice.Objects < 0 || o.choice.Rounds < 0 {
		return nil, fmt.Errorf("-objects and -rounds must not be negative")
	}
	return o, nil
}

// names is a flag with comma-separated names.
type names []string

func (l *names) String() string { return strings.Join(*l, ",") }

func (l *names) Set(text string) error {
	*l = strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
	return nil
}
