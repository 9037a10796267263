package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
)

// validateFlags are the flags of validate.
type validateFlags struct {
	target *session.ServerFlags
	crds   []string
	live   bool
	output string
}

// newValidate returns the command.
func newValidate(streams genericiooptions.IOStreams) *cobra.Command {
	f := &validateFlags{target: session.NewServerFlags()}
	cmd := &cobra.Command{
		Use:        "validate CONFIG... [flags]",
		SuggestFor: []string{"lint", "check"},
		Short:      "Check index configs, also against the schemas of the types they name",
		Long: "Check index configs and report everything that is wrong at once: file, line, column, a code, and a way\n" +
			"out. Several files are checked as the one config that they make together.\n\n" +
			"With --crds the paths are compared with the schemas in files, with --live with those of the cluster.\n" +
			"The exit code is 2 when something is wrong; warnings alone leave it 0.",
		Example: "  crdcache validate indexes.yaml --crds config/crd/\n" +
			"  crdcache validate indexes.yaml --live -o json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exit.Usagef("name at least one config, as in '%s indexes.yaml'", cmd.CommandPath())
			}
			return nil
		},
		RunE: runs(streams, f.toOptions),
	}
	set := cmd.Flags()
	f.target.Add(set)
	set.StringSliceVar(&f.crds, "crds", nil, "File or directory with CustomResourceDefinitions to compare the paths with, or a snapshot. May be repeated.")
	set.BoolVar(&f.live, "live", false, "Compare the paths with the CustomResourceDefinitions of the cluster.")
	set.StringVarP(&f.output, "output", "o", formatText, "Output format: text, on stderr, or json, on stdout.")
	f.target.Complete(cmd)
	print.CompleteWords(cmd, "output", []string{formatText, formatJSON})
	return cmd
}

// validateOptions are what flags and arguments amount to.
type validateOptions struct {
	genericiooptions.IOStreams
	configs []string
	crds    []string
	target  *session.Target // nil unless the cluster is asked
	json    bool
}

func (f *validateFlags) toOptions(cmd *cobra.Command, args []string, streams genericiooptions.IOStreams) (*validateOptions, error) {
	streams = f.target.Streams(streams)
	if len(f.crds) == 0 && cmd.Flags().Changed("crds") {
		return nil, exit.Usagef("--crds names no file: is it a variable that is not set?")
	}
	if f.live && len(f.crds) > 0 {
		return nil, exit.Usagef("--crds and --live exclude each other: give one of them")
	}
	if err := print.OneOf("output format", f.output, []string{formatText, formatJSON}); err != nil {
		return nil, err
	}
	o := &validateOptions{IOStreams: streams, configs: args, crds: f.crds, json: f.output == formatJSON}
	if !f.live {
		if err := f.target.RefuseAll("without --live, which compares with the types of a cluster or of --from"); err != nil {
			return nil, err
		}
	}
	if f.live {
		var err error
		if o.target, err = f.target.Target(cmd.Context(), streams); err != nil {
			return nil, err
		}
	}
	return o, nil
}
