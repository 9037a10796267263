package dump

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/internal/cli/exit"
	"github.com/crdcache/crdcache/internal/cli/indexed"
	"github.com/crdcache/crdcache/internal/cli/output"
	"github.com/crdcache/crdcache/internal/cli/target"
)

// flags are the flags of dump.
type flags struct {
	target            *target.Flags
	selectors         target.SelectorFlags
	configs           indexed.Flags
	output            string
	noHeaders         bool
	showManagedFields bool
}

func (f *flags) add(set *pflag.FlagSet) {
	f.target.Add(set)
	f.target.AddAllNamespaces(set)
	f.selectors.Add(set)
	f.configs.Add(set)
	set.StringVarP(&f.output, "output", "o", output.Table, "Output format: "+output.FormatList()+".")
	set.BoolVar(&f.noHeaders, "no-headers", false, "Print tables without headers.")
	set.BoolVar(&f.showManagedFields, "show-managed-fields", false, "Keep metadata.managedFields in json and yaml output.")
}

// NewCommand returns the command.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	f := &flags{target: target.NewFlags()}
	cmd := &cobra.Command{
		Use:   "dump TYPE... [flags]",
		Short: "Print the objects of one or more types",
		Long: "Sync the types through informers, then print what the caches hold, as kubectl get would.\n\n" +
			"A TYPE is a name that kubectl knows (certificates, cert, Certificate), with or without a group\n" +
			"(certificates.cert-manager.io) and a version (certificates.v1.cert-manager.io), a category, or a\n" +
			"wildcard (*.cert-manager.io), or with --config the name of a resource there. A type that is unknown or\n" +
			"may not be read is reported, and does not keep the others from being printed; the exit code tells.",
		Example: "  crdcache dump certificates.cert-manager.io -A -o json\n" +
			"  crdcache dump cert,issuers -n web",
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
	f.add(cmd.Flags())
	f.target.Complete(cmd)
	target.CompleteWords(cmd, "output", output.Formats())
	return cmd
}
