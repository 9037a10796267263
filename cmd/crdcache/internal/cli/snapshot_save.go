package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/capture"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
)

// snapshotSaveFlags are the flags of snapshot save.
type snapshotSaveFlags struct {
	target *session.ServerFlags
	all    bool
	redact bool
	config string
}

// newSnapshotSave returns the command.
func newSnapshotSave(streams genericiooptions.IOStreams) *cobra.Command {
	f := &snapshotSaveFlags{target: session.NewServerFlags()}
	cmd := &cobra.Command{
		Use:   "save FILE (TYPE... | --all) [flags]",
		Short: "Save the objects of types in a file",
		Long: "Save all objects of the types, in all namespaces unless --namespace gives one, in a file that only you may read;\n" +
			"'-' is standard output. CustomResourceDefinitions, columns and discovery are saved with them. The file is there when\n" +
			"all of it is, and takes the place of an earlier snapshot.\n\n" +
			"The objects of a type are all of one resource version, which the file has; types are read one after another. A type\n" +
			"that cannot be read is reported, and the file says why; the exit code tells.\n\n" +
			"--redact leaves out the data of Secrets, and --redact-config what a file names, as in\n" +
			"'redact: [{type: gizmos.example.com, paths: [.spec.token]}]'. With --from, a snapshot is made of files, or of a part of\n" +
			"another snapshot.",
		Example: "  crdcache snapshot save before.snapshot --all --redact\n" +
			"  crdcache snapshot save certs.snapshot '*.cert-manager.io' secrets -n web",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return exit.Usagef("name the file, as in '%s before.snapshot --all'", cmd.CommandPath())
			case len(args) == 1 && !f.all:
				return exit.Usagef("name types behind the file, or give --all")
			case len(args) > 1 && f.all:
				return exit.Usagef("--all and types exclude each other: give one of them")
			}
			return nil
		},
		RunE: runs(streams, f.toOptions),
	}
	set := cmd.Flags()
	f.target.Add(set)
	set.BoolVar(&f.all, "all", false, "Save all types that can be listed and watched.")
	set.BoolVar(&f.redact, "redact", false, "Leave out the data of Secrets.")
	set.StringVar(&f.config, "redact-config", "", "Leave out what this YAML file names, and the data of Secrets.")
	f.target.Complete(cmd)
	types := f.target.CompleteTypes(true, nil)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return types(cmd, args[1:], begun)
	}
	return cmd
}

// snapshotSaveOptions are what flags and arguments amount to.
type snapshotSaveOptions struct {
	genericiooptions.IOStreams
	target     *session.Target
	path       string
	types      []string // none: all
	redactions []capture.Redaction
}

func (f *snapshotSaveFlags) toOptions(cmd *cobra.Command, args []string, streams genericiooptions.IOStreams) (*snapshotSaveOptions, error) {
	o := &snapshotSaveOptions{IOStreams: f.target.Streams(streams), path: args[0]}
	var err error
	if o.types, err = session.SplitTypes(args[1:]); err != nil {
		return nil, err
	}
	if f.redact || f.config != "" {
		o.redactions = append(o.redactions, capture.Secrets)
	}
	if f.config != "" {
		text, err := os.ReadFile(f.config)
		if err != nil {
			return nil, exit.Usagef("--redact-config: %v", err)
		}
		more, err := capture.ParseRedactions(text)
		if err != nil {
			return nil, exit.Usagef("--redact-config: %s: %v", f.config, err)
		}
		o.redactions = append(o.redactions, more...)
	}
	if err := replaceable(o.path); err != nil {
		return nil, err
	}
	if o.path == stdoutPath && print.IsTerminal(streams.Out) {
		return nil, exit.Usagef("a snapshot is binary and is not written to a terminal: name a file, or redirect the output")
	}
	if o.target, err = f.target.Target(cmd.Context(), o.IOStreams); err != nil {
		return nil, err
	}
	if named := cmd.Flags().Lookup("namespace"); named.Value.String() == "" {
		o.target.Namespace = "" // a moment of the cluster, not of the namespace of the context
	}
	return o, nil
}

func (o *snapshotSaveOptions) warn(text string) { fmt.Fprintf(o.ErrOut, "warning: %s\n", text) }
