package watch

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/cli/exit"
	"github.com/crdcache/crdcache/internal/cli/indexed"
	"github.com/crdcache/crdcache/internal/cli/output"
	"github.com/crdcache/crdcache/internal/cli/reader"
	"github.com/crdcache/crdcache/internal/cli/show"
	"github.com/crdcache/crdcache/internal/cli/target"
)

// flags are the flags of watch.
type flags struct {
	reader      *reader.Flags
	conditions  indexed.QueryFlags
	style       show.StyleFlags
	color       output.ColorFlag
	changesOnly bool
	diff        bool
}

// NewCommand returns the command.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	f := &flags{reader: reader.NewFlags()}
	cmd := &cobra.Command{
		Use:   "watch TYPE... [flags]",
		Short: "Stream changes of the objects of one or more types, or of a query",
		Long: "Print the objects of the types, and then each change until interrupted. With conditions, as query takes\n" +
			"them, changes are relative to the query: an object that stops fulfilling it is DELETED.\n\n" +
			"The types are followed as their CustomResourceDefinitions come and go, which is said on stderr.\n" +
			"In json each event is a line of its own, with type and object.",
		Example: "  crdcache watch certificates.cert-manager.io -A --diff\n" +
			"  crdcache watch certs --config indexes.yaml --index notReady --changes-only",
		Args:                  reader.NeedTypes,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.toOptions(cmd.Context(), args, streams)
			if err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	set := cmd.Flags()
	f.reader.Add(set)
	f.conditions.Add(set)
	f.style.Add(set)
	f.color.Add(set)
	set.BoolVar(&f.changesOnly, "changes-only", false, "Do not print what is there in the beginning.")
	set.BoolVar(&f.diff, "diff", false, "Print below each changed object what changed.")
	f.reader.Complete(cmd, true)
	f.style.Complete(cmd)
	target.CompleteWords(cmd, "color", []string{"auto", "always", "never"})
	f.reader.CompleteIndexes(cmd, "=", "index", "not")
	f.reader.CompleteIndexes(cmd, "", "missing")
	return cmd
}

// options are what flags and arguments amount to.
type options struct {
	*reader.Reader
	query       query.Query
	style       show.Style
	color       bool
	changesOnly bool
	diff        bool
}

func (f *flags) toOptions(ctx context.Context, args []string, streams genericiooptions.IOStreams) (*options, error) {
	o := &options{changesOnly: f.changesOnly, diff: f.diff}
	var err error
	if o.style, err = f.style.Style(); err != nil {
		return nil, err
	}
	rows := o.style.Format.Name == output.Table || o.style.Format.Name == output.Wide
	switch {
	case o.diff && !rows:
		return nil, exit.Usagef("--diff goes with tables: leave out --output, or give wide")
	case o.style.Format.Name == output.CSV:
		return nil, exit.Usagef("changes cannot be printed as csv: use jsonl or custom-columns")
	}
	if o.color, err = f.color.Enabled(streams.Out); err != nil {
		return nil, err
	}
	if o.query, err = f.conditions.Query(); err != nil {
		return nil, err
	}
	o.Reader, err = f.reader.Reader(ctx, args, f.style.Cached(), streams)
	return o, err
}
