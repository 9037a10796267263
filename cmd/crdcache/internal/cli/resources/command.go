package resources

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/indexed"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/output"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/target"
)

// The output formats.
const (
	formatTable = "table"
	formatWide  = "wide"
	formatName  = "name"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

var formats = []string{formatTable, formatWide, formatName, formatJSON, formatYAML}

// flags are the flags of resources.
type flags struct {
	target    *target.Flags
	configs   indexed.Flags
	output    string
	noHeaders bool
	custom    bool
}

// NewCommand returns the command.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	f := &flags{target: target.NewFlags()}
	cmd := &cobra.Command{
		Use:   "resources [TYPE...] [flags]",
		Short: "List the types of the server, their versions and their state",
		Long: "List what discovery and the watch on CustomResourceDefinitions know: kind, scope, versions, and whether\n" +
			"a type is served. A TYPE is a name or a wildcard; without one, all types are listed. With --config the\n" +
			"indexes that apply to each type are shown.\n\n" +
			"Of the versions the preferred one comes first; those in parentheses are not served.",
		Example: "  crdcache resources '*.cert-manager.io'\n" +
			"  crdcache resources --custom --config indexes.yaml",
		ValidArgsFunction:     f.target.CompleteTypes(true, nil),
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
	f.configs.Add(set)
	set.StringVarP(&f.output, "output", "o", formatTable, "Output format: table, wide, name, json or yaml.")
	set.BoolVar(&f.noHeaders, "no-headers", false, "Print the table without headers.")
	set.BoolVar(&f.custom, "custom", false, "List only types that come from CustomResourceDefinitions.")
	f.target.Complete(cmd)
	output.CompleteWords(cmd, "output", formats)
	return cmd
}

// options are what flags and arguments amount to.
type options struct {
	genericiooptions.IOStreams
	target    *target.Target
	types     []string
	config    *indexed.Config
	format    string
	noHeaders bool
	custom    bool
}

func (f *flags) toOptions(ctx context.Context, args []string, streams genericiooptions.IOStreams) (*options, error) {
	streams = f.target.Streams(streams)
	if err := output.OneOf("output format", f.output, formats); err != nil {
		return nil, err
	}
	types, err := target.SplitTypes(args)
	if err != nil {
		return nil, err
	}
	o := &options{IOStreams: streams, types: types, format: f.output, noHeaders: f.noHeaders, custom: f.custom}
	if o.config, err = f.configs.Load(o.warn); err != nil {
		return nil, err
	}
	if o.config.Given && f.output == formatName {
		return nil, exit.Usagef("--config shows indexes, and --output name shows none: leave out one of them")
	}
	o.target, err = f.target.Target(ctx, streams)
	return o, err
}

func (o *options) warn(text string) { fmt.Fprintf(o.ErrOut, "warning: %s\n", text) }
