package cli

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/follow"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/indexers/query"
)

// dumpFlags are the flags of dump.
type dumpFlags struct {
	reader *session.ReadFlags
	style  print.StyleFlags
	watch  bool
}

// newDump returns the command.
func newDump(streams genericiooptions.IOStreams) *cobra.Command {
	f := &dumpFlags{reader: session.NewReadFlags()}
	cmd := &cobra.Command{
		Use:   "dump TYPE... [flags]",
		Short: "Print the objects of one or more types",
		Long: "Sync the types through informers, then print what the caches hold, as kubectl get would.\n\n" +
			"A TYPE is a name that kubectl knows (certificates, cert, Certificate), with or without a group\n" +
			"(certificates.cert-manager.io) and a version (certificates.v1.cert-manager.io), a category, or a\n" +
			"wildcard (*.cert-manager.io), or with --config the name of a resource there. A type that is unknown or\n" +
			"may not be read is reported, and does not keep the others from being printed; the exit code tells.\n\n" +
			"With --watch, what changes is printed as well until interrupted, as kubectl get --watch does, of several types\n" +
			"and wildcards, too, and each object on its own in json and yaml. Types may come and go meanwhile, as with watch.",
		Example: "  crdcache dump certificates.cert-manager.io -A -o json\n" +
			"  crdcache dump cert,issuers -n web",
		Args:                  session.NeedTypes,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.toOptions(cmd.Context(), args, streams)
			if err != nil {
				return err
			}
			if f.watch {
				return o.follow(cmd.Context())
			}
			return o.run(cmd.Context())
		},
	}
	f.reader.Add(cmd.Flags())
	f.style.Add(cmd.Flags())
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "After the objects, print each that changes until interrupted.")
	f.reader.Complete(cmd, true)
	f.style.Complete(cmd)
	return cmd
}

// dumpOptions are what flags and arguments amount to.
type dumpOptions struct {
	*session.Reader
	style print.Style
}

func (f *dumpFlags) toOptions(ctx context.Context, args []string, streams genericiooptions.IOStreams) (*dumpOptions, error) {
	style, err := f.style.Style()
	if err != nil {
		return nil, err
	}
	if f.watch {
		if err := (follow.Options{Style: style}).Check(); err != nil {
			return nil, err
		}
	}
	read, err := f.reader.Reader(ctx, args, f.style.Cached(), streams)
	return &dumpOptions{read, style}, err
}

// run syncs the types and prints those that are synced.
func (o *dumpOptions) run(ctx context.Context) error {
	return o.Sync(ctx, session.Steps{Use: o.print})
}

// follow prints the objects and then those that change.
func (o *dumpOptions) follow(ctx context.Context) error {
	return follow.Run(ctx, follow.Options{Reader: o.Reader, Style: o.style, Query: query.All()})
}

func (o *dumpOptions) print(ctx context.Context, types *session.Types, _ session.Indexes, synced []session.Cache) error {
	options, err := types.Show(o.style)
	if err != nil {
		return err
	}
	sections := make([]print.Section, len(synced))
	for i, c := range synced {
		sections[i] = c.Section()
	}
	return print.Sections(ctx, sections, options)
}
