package query

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/indexed"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/reader"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/show"
)

// flags are the flags of query.
type flags struct {
	reader     *reader.Flags
	conditions indexed.QueryFlags
	style      show.StyleFlags

	sortBy     string
	descending bool
	limit      int
	next       string

	count    bool
	keysOnly bool
	values   string
	groupBy  string
	explain  bool
}

// NewCommand returns the command.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	f := &flags{reader: reader.NewFlags()}
	cmd := &cobra.Command{
		Use:   "query TYPE [flags]",
		Short: "Find objects of a type by indexes",
		Long: "Sync the type, then print the objects that fulfil all conditions (with --or: any of them).\n\n" +
			"--index takes name=value, and !=, <, <=, >, >=, ^= (begins with), 'in (a, b)', a name alone (has a value)\n" +
			"and !name (has none); && , || and parentheses join them. The indexes come from --config, where TYPE may be\n" +
			"the name of a resource. --where takes a path or a condition on @, and needs no config.",
		Example: "  crdcache query certs --config indexes.yaml --index issuer=letsencrypt\n" +
			"  crdcache query certs --config indexes.yaml --index 'expiry<2026-03-01T00:00:00Z' --sort-by expiry\n" +
			"  crdcache query certs --config indexes.yaml --group-by issuer\n" +
			"  crdcache query certificates.cert-manager.io -A --where '@.spec.dnsNames[?(@ == \"example.com\")]'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("name one type, as in '%s certificates.cert-manager.io'; got %d arguments", cmd.CommandPath(), len(args))
			}
			return nil
		},
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := f.toOptions(cmd.Context(), cmd.Flags(), args[0], streams)
			if err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	f.add(cmd.Flags())
	f.reader.Complete(cmd, false)
	f.style.Complete(cmd)
	f.reader.CompleteIndexes(cmd, "=", "index", "not")
	f.reader.CompleteIndexes(cmd, "", "missing", "values", "group-by")
	f.reader.CompleteSorted(cmd, "sort-by")
	return cmd
}

func (f *flags) add(set *pflag.FlagSet) {
	f.reader.Add(set)
	f.conditions.Add(set)
	f.style.Add(set)
	set.StringVar(&f.sortBy, "sort-by", "", "Sort by the values of this index, which has to be sorted. Default: by namespace and name.")
	set.BoolVar(&f.descending, "descending", false, "Sort from the greatest value to the least; with --sort-by.")
	set.IntVar(&f.limit, "limit", 0, "Print at most this many objects, and on stderr the token to go on with; 0 prints all.")
	set.StringVar(&f.next, "continue", "", "Go on after an earlier result of the same query that --limit cut short.")
	set.BoolVar(&f.count, "count", false, "Print only how many objects there are.")
	set.BoolVar(&f.keysOnly, "keys-only", false, "Print only namespace/name of each object.")
	set.StringVar(&f.values, "values", "", "Print the values of this index that the objects have.")
	set.StringVar(&f.groupBy, "group-by", "", "Print the values of this index with the number of objects, the most frequent first.")
	set.BoolVar(&f.explain, "explain", false, "Print how the query is answered instead of the objects.")
}
