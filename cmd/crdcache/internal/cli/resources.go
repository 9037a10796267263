package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
)

var resourcesFormats = []string{formatTable, formatWide, formatName, formatJSON, formatYAML}

// resourcesFlags are the flags of resources.
type resourcesFlags struct {
	target    *session.ServerFlags
	configs   session.ConfigFlags
	output    string
	noHeaders bool
	custom    bool
}

// newResources returns the command.
func newResources(streams genericiooptions.IOStreams) *cobra.Command {
	f := &resourcesFlags{target: session.NewServerFlags()}
	cmd := &cobra.Command{
		Use:        "resources [TYPE...] [flags]",
		SuggestFor: []string{"api-resources", "types", "crds"},
		Short:      "List the types of the server, their versions and their state",
		Long: "List what discovery and the watch on CustomResourceDefinitions know: kind, scope, versions, and whether\n" +
			"a type is served. A TYPE is a name or a wildcard; without one, all types are listed. With --config the\n" +
			"indexes that apply to each type are shown.\n\n" +
			"Of the versions the preferred one comes first; those in parentheses are not served.",
		Example: "  crdcache resources '*.cert-manager.io'\n" +
			"  crdcache resources --custom --config indexes.yaml",
		ValidArgsFunction: f.target.CompleteTypes(true, nil),
		RunE:              runs(streams, f.toOptions),
	}
	set := cmd.Flags()
	f.target.Add(set)
	f.configs.Add(set)
	set.StringVarP(&f.output, "output", "o", formatTable, "Output format: table, wide, name, json or yaml.")
	set.BoolVar(&f.noHeaders, "no-headers", false, "Print the table without headers.")
	set.BoolVar(&f.custom, "custom", false, "List only types that come from CustomResourceDefinitions.")
	f.target.Complete(cmd)
	print.CompleteWords(cmd, "output", resourcesFormats)
	return cmd
}

// resourcesOptions are what flags and arguments amount to.
type resourcesOptions struct {
	genericiooptions.IOStreams
	target    *session.Target
	types     []string
	config    *session.Config
	format    string
	noHeaders bool
	custom    bool
}

func (f *resourcesFlags) toOptions(cmd *cobra.Command, args []string, streams genericiooptions.IOStreams) (*resourcesOptions, error) {
	streams = f.target.Streams(streams)
	if err := print.OneOf("output format", f.output, resourcesFormats); err != nil {
		return nil, err
	}
	types, err := session.SplitTypes(args)
	if err != nil {
		return nil, err
	}
	o := &resourcesOptions{IOStreams: streams, types: types, format: f.output, noHeaders: f.noHeaders, custom: f.custom}
	if o.config, err = f.configs.Load(o.warn); err != nil {
		return nil, err
	}
	if o.config.Given && f.output == formatName {
		return nil, exit.Usagef("--config shows indexes, and --output name shows none: leave out one of them")
	}
	o.target, err = f.target.Target(cmd.Context(), streams)
	return o, err
}

func (o *resourcesOptions) warn(text string) { fmt.Fprintf(o.ErrOut, "warning: %s\n", text) }
