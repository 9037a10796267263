package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
)

// livePath stands for the cluster in the place of a second snapshot.
const livePath = "live"

// snapshotDiffFlags are the flags of snapshot diff.
type snapshotDiffFlags struct {
	target *session.ServerFlags
	output string
	ignore []string
	color  print.ColorFlag
}

var snapshotDiffFormats = []string{formatText, formatJSON, formatYAML}

// newSnapshotDiff returns the command.
func newSnapshotDiff(streams genericiooptions.IOStreams) *cobra.Command {
	f := &snapshotDiffFlags{target: session.NewServerFlags()}
	cmd := &cobra.Command{
		Use:   "diff FILE (FILE | live) [TYPE...] [flags]",
		Short: "Print what differs between two snapshots, or between one and the cluster",
		Long: "Print which objects were added, removed and changed between two snapshots, and which of their fields, by type; with\n" +
			"'live' in the place of the second file, between a snapshot and the cluster. Without types all are compared that\n" +
			"both have; those that one of them does not have are told. What was redacted in one is not compared, and if one has the\n" +
			"objects of a namespace alone, or --namespace names one, only those are, and all that are in no namespace.\n\n" +
			"Fields that change with every write are not compared: resource version, generation, managedFields, the annotation\n" +
			"of kubectl apply, and the heartbeats of Leases and Nodes. --ignore leaves out more: status, or a path. Events are\n" +
			"compared only if they are named. The values of Secrets are printed as marks, which show that they differ.\n\n" +
			"The exit code is that of diff: 0 without differences, 1 with some, more than 1 when something is wrong.",
		Example: "  crdcache snapshot diff before.snapshot after.snapshot\n" +
			"  crdcache snapshot diff before.snapshot live certificates --ignore status",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return exit.Usagef("name two files, or one and '%s', as in '%s before.snapshot %[1]s'", livePath, cmd.CommandPath())
			}
			return nil
		},
		RunE: runs(streams, f.toOptions),
	}
	set := cmd.Flags()
	f.target.Add(set)
	set.StringVarP(&f.output, "output", "o", formatText, "Output format: text, json or yaml.")
	set.StringSliceVar(&f.ignore, "ignore", nil, "Leave out these fields: status, or paths, as in .metadata.uid or '.metadata.annotations[\"example.com/seen\"]'. May be repeated.")
	f.color.Add(set)
	f.target.Complete(cmd)
	print.CompleteWords(cmd, "output", snapshotDiffFormats)
	print.CompleteWords(cmd, "color", []string{"auto", "always", "never"})
	print.CompleteWords(cmd, "ignore", []string{"status"})
	types := f.target.CompleteTypes(true, nil)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return nil, cobra.ShellCompDirectiveDefault
		case 1:
			if begun != "" && strings.HasPrefix(livePath, begun) {
				return []string{livePath}, cobra.ShellCompDirectiveDefault
			}
			return nil, cobra.ShellCompDirectiveDefault
		}
		return types(cmd, args[2:], begun)
	}
	return cmd
}

// snapshotDiffOptions are what flags and arguments amount to.
type snapshotDiffOptions struct {
	genericiooptions.IOStreams
	before, after string
	target        *session.Target // nil: both are files
	types         []string
	namespace     string // empty for all that both have
	ignored       []string
	format        string
	color         bool
}

func (f *snapshotDiffFlags) toOptions(cmd *cobra.Command, args []string, streams genericiooptions.IOStreams) (*snapshotDiffOptions, error) {
	if err := print.OneOf("output format", f.output, snapshotDiffFormats); err != nil {
		return nil, err
	}
	o := &snapshotDiffOptions{IOStreams: f.target.Streams(streams), before: args[0], after: args[1], ignored: f.ignore, format: f.output}
	if f.output != formatText && cmd.Flags().Changed("color") {
		return nil, exit.Usagef("--color goes with text, and not with --output %s", f.output)
	}
	var err error
	if o.namespace, err = cmd.Flags().GetString("namespace"); err != nil {
		return nil, err
	}
	if o.types, err = session.SplitTypes(args[2:]); err != nil {
		return nil, err
	}
	for _, one := range f.ignore {
		if one != "status" && !strings.HasPrefix(one, ".") {
			return nil, exit.Usagef("--ignore takes status or a path, as in .spec.replicas; got %q", one)
		}
	}
	if err := omissionOf(f.ignore).prune.Validate(); err != nil {
		return nil, exit.Usagef("--ignore: %v", err)
	}
	if o.color, err = f.color.Enabled(streams.Out); err != nil {
		return nil, err
	}
	if o.before == livePath {
		return nil, exit.Usagef("'%s' is the second of the two", livePath)
	}
	if o.after == livePath {
		o.target, err = f.target.Target(cmd.Context(), o.IOStreams)
		return o, exit.Trouble(err)
	}
	return o, f.target.RefuseAll("between two files")
}

func (o *snapshotDiffOptions) warn(text string) { fmt.Fprintf(o.ErrOut, "warning: %s\n", text) }
