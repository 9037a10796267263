package watch

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/cli/exit"
	"github.com/crdcache/crdcache/internal/cli/indexed"
	"github.com/crdcache/crdcache/internal/cli/output"
	"github.com/crdcache/crdcache/internal/cli/target"
)

// flags are the flags of watch.
type flags struct {
	target            *target.Flags
	selectors         target.SelectorFlags
	configs           indexed.Flags
	conditions        indexed.QueryFlags
	color             output.ColorFlag
	output            string
	noHeaders         bool
	showManagedFields bool
	changesOnly       bool
	diff              bool
}

// NewCommand returns the command.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	f := &flags{target: target.NewFlags()}
	cmd := &cobra.Command{
		Use:   "watch TYPE... [flags]",
		Short: "Stream changes of the objects of one or more types, or of a query",
		Long: "Print the objects of the types, and then each change until interrupted. With conditions, as query takes\n" +
			"them, changes are relative to the query: an object that stops fulfilling it is DELETED.\n\n" +
			"The types are followed as their CustomResourceDefinitions come and go, which is said on stderr.\n" +
			"In json each event is a line of its own, with type and object.",
		Example: "  crdcache watch certificates.cert-manager.io -A --diff\n" +
			"  crdcache watch certs --config indexes.yaml --index notReady --changes-only",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.Usagef("name at least one type, as in '%s certificates.cert-manager.io'", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction:     f.target.CompleteTypes(true, f.configs.ResourceNames),
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
	f.target.Add(set)
	f.target.AddAllNamespaces(set)
	f.selectors.Add(set)
	f.configs.Add(set)
	f.conditions.Add(set)
	f.color.Add(set)
	set.StringVarP(&f.output, "output", "o", output.Table, "Output format of each object: "+output.FormatList()+".")
	set.BoolVar(&f.noHeaders, "no-headers", false, "Print rows without headers.")
	set.BoolVar(&f.showManagedFields, "show-managed-fields", false, "Keep metadata.managedFields in json and yaml output.")
	set.BoolVar(&f.changesOnly, "changes-only", false, "Do not print what is there in the beginning.")
	set.BoolVar(&f.diff, "diff", false, "Print below each changed object what changed.")
	f.target.Complete(cmd)
	target.CompleteWords(cmd, "color", []string{"auto", "always", "never"})
	target.CompleteWords(cmd, "output", output.Formats())
	f.configs.Complete(cmd, "=", "index", "not")
	f.configs.Complete(cmd, "", "missing")
	return cmd
}

// options are what flags and arguments amount to.
type options struct {
	genericiooptions.IOStreams
	target      *target.Target
	config      *indexed.Config
	types       []string
	query       query.Query
	cached      dynamicinformer.ResourceOptions
	format      output.Format
	color       bool
	noHeaders   bool
	changesOnly bool
	diff        bool
}

func (f *flags) toOptions(ctx context.Context, args []string, streams genericiooptions.IOStreams) (*options, error) {
	streams = f.target.Streams(streams)
	o := &options{IOStreams: streams, noHeaders: f.noHeaders, changesOnly: f.changesOnly, diff: f.diff}
	var err error
	if o.format, err = output.ParseFormat(f.output); err != nil {
		return nil, exit.Usagef("%v", err)
	}
	rows := o.format.Name == output.Table || o.format.Name == output.Wide
	switch {
	case o.diff && !rows:
		return nil, exit.Usagef("--diff goes with tables: leave out --output, or give wide")
	case o.format.Name == output.CSV:
		return nil, exit.Usagef("changes cannot be printed as csv: use jsonl or custom-columns")
	}
	if o.color, err = f.color.Enabled(streams.Out); err != nil {
		return nil, err
	}
	if o.query, err = f.conditions.Query(); err != nil {
		return nil, err
	}
	if o.config, err = f.configs.Load(o.warn); err != nil {
		return nil, err
	}
	if o.types, err = o.config.TypeNames(args); err != nil {
		return nil, err
	}
	if !f.showManagedFields {
		o.cached.Transform = dynamicinformer.StripManagedFields
	}
	if err = f.selectors.Apply(&o.cached); err != nil {
		return nil, err
	}
	o.target, err = f.target.Target(ctx, streams)
	return o, err
}
