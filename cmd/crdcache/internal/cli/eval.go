package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// evalFlags are the flags of eval.
type evalFlags struct {
	files     []string
	recursive bool
	dialect   string
	quiet     bool
}

// newEval returns the command.
func newEval(streams genericiooptions.IOStreams) *cobra.Command {
	f := &evalFlags{}
	cmd := &cobra.Command{
		Use:        "eval PATH|CONDITION -f FILE [flags]",
		SuggestFor: []string{"jsonpath", "jq"},
		Short:      "Show what a path gives on an object, and why it gives nothing",
		Long: "Evaluate a path or a condition, as an index config or --where takes it, on the objects of files. Each value\n" +
			"is printed as JSON on a line of its own; where there are several objects, the object comes first. What gives\n" +
			"no value is explained on stderr: how far the path leads, and what is there.\n\n" +
			"A condition, as in '@.spec.replicas > 4', prints true or false. What can be read as a path is one: a lone\n" +
			"@.spec.paused prints the value, not whether there is one, which !!@.spec.paused does.",
		Example: "  crdcache eval .spec.issuerRef.name -f certificate.yaml\n" +
			"  kubectl get cert -A -o yaml | crdcache eval '.status.conditions[?(@.type==\"Ready\")].status' -f -\n" +
			"  crdcache eval '@.spec.replicas > 4 && !@.spec.paused' -f workloads/",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("give one path or condition, as in '%s .metadata.name -f object.yaml'; got %d arguments", cmd.CommandPath(), len(args))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              runs(streams, f.toOptions),
	}
	set := cmd.Flags()
	set.StringSliceVarP(&f.files, "filename", "f", nil, "File or directory with objects, YAML or JSON, or a snapshot; - is standard input. May be repeated.")
	set.BoolVarP(&f.recursive, "recursive", "R", false, "Read directories with everything below them.")
	set.StringVar(&f.dialect, "dialect", jsonpath.Literal.String(), "How ['a.b'] is read: literal (one key) or kubectl (a, then b).")
	print.CompleteWords(cmd, "dialect", []string{jsonpath.Literal.String(), jsonpath.Kubectl.String()})
	set.BoolVar(&f.quiet, "quiet", false, "Do not explain on stderr why there is no value.")
	return cmd
}

// evalOptions are what flags and arguments amount to.
type evalOptions struct {
	genericiooptions.IOStreams
	expr      expression
	files     []string
	recursive bool
	quiet     bool
}

func (f *evalFlags) toOptions(_ *cobra.Command, args []string, streams genericiooptions.IOStreams) (*evalOptions, error) {
	if len(f.files) == 0 {
		return nil, exit.Usagef("name a file with --filename (-f), or give - to read objects from standard input")
	}
	dialect := jsonpath.Literal
	switch f.dialect {
	case jsonpath.Literal.String():
	case jsonpath.Kubectl.String():
		dialect = jsonpath.Kubectl
	default:
		return nil, exit.Usagef("there is no dialect %q; use literal or kubectl", f.dialect)
	}
	compiled, err := compile(args[0], dialect)
	if err != nil {
		return nil, err
	}
	return &evalOptions{IOStreams: streams, expr: compiled, files: f.files, recursive: f.recursive, quiet: f.quiet}, nil
}
