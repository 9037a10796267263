package dump

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/reader"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/show"
)

// flags are the flags of dump.
type flags struct {
	reader *reader.Flags
	style  show.StyleFlags
	watch  bool
}

// NewCommand returns the command.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	f := &flags{reader: reader.NewFlags()}
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
		Args:                  reader.NeedTypes,
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
