package eval

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/indexers/jsonpath"
	"github.com/crdcache/crdcache/internal/cli/exit"
	"github.com/crdcache/crdcache/internal/cli/target"
)

// flags are the flags of eval.
type flags struct {
	files     []string
	recursive bool
	dialect   string
	quiet     bool
}

// NewCommand returns the command.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "eval PATH -f FILE [flags]",
		Short: "Show what a path gives on an object, and why it gives nothing",
		Long: "Evaluate a path, as an index config or --where takes it, on the objects of files. Each value is printed\n" +
			"as JSON on a line of its own; where there are several objects, the object comes first. What gives no\n" +
			"value is explained on stderr: how far the path leads, and what is there.",
		Example: "  crdcache eval .spec.issuerRef.name -f certificate.yaml\n" +
			"  kubectl get cert -A -o yaml | crdcache eval '.status.conditions[?(@.type==\"Ready\")].status' -f -",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("give one path, as in '%s .metadata.name -f object.yaml'; got %d arguments", cmd.CommandPath(), len(args))
			}
			return nil
		},
		ValidArgsFunction:     cobra.NoFileCompletions,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.toOptions(args[0], streams)
			if err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	set := cmd.Flags()
	set.StringSliceVarP(&f.files, "filename", "f", nil, "File or directory with objects, YAML or JSON; - is standard input. May be repeated.")
	set.BoolVarP(&f.recursive, "recursive", "R", false, "Read directories with everything below them.")
	set.StringVar(&f.dialect, "dialect", jsonpath.Literal.String(), "How ['a.b'] is read: literal (one key) or kubectl (a, then b).")
	target.CompleteWords(cmd, "dialect", []string{jsonpath.Literal.String(), jsonpath.Kubectl.String()})
	set.BoolVar(&f.quiet, "quiet", false, "Do not explain on stderr why there is no value.")
	return cmd
}

// options are what flags and arguments amount to.
type options struct {
	genericiooptions.IOStreams
	path      *jsonpath.Path
	files     []string
	recursive bool
	quiet     bool
}

func (f *flags) toOptions(expr string, streams genericiooptions.IOStreams) (*options, error) {
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
	path, err := jsonpath.Compile(expr, jsonpath.WithDialect(dialect))
	var wrong *jsonpath.Error
	switch {
	case errors.As(err, &wrong):
		return nil, exit.UsageLines(fmt.Sprintf("the path is wrong: %s\n%s", wrong.Text(), wrong.Caret()))
	case err != nil:
		return nil, exit.Usagef("the path is wrong: %v", err)
	}
	return &options{IOStreams: streams, path: path, files: f.files, recursive: f.recursive, quiet: f.quiet}, nil
}
