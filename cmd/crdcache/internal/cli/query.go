package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/indexers/query"
)

// queryFlags are the flags of query.
type queryFlags struct {
	reader     *session.ReadFlags
	conditions session.QueryFlags
	style      print.StyleFlags

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

// newQuery returns the command.
func newQuery(streams genericiooptions.IOStreams) *cobra.Command {
	f := &queryFlags{reader: session.NewReadFlags()}
	cmd := &cobra.Command{
		Use:        "query TYPE [flags]",
		SuggestFor: []string{"find", "search", "select", "where"},
		Short:      "Find objects of a type by indexes",
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

func (f *queryFlags) add(set *pflag.FlagSet) {
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

// queryOptions are what flags and arguments amount to.
type queryOptions struct {
	*session.Reader
	name  string // of the type, as it was given
	query query.Query
	asked query.Options
	style print.Style

	count, keysOnly, explain bool
	values, groupBy          string // index names
}

func (f *queryFlags) toOptions(ctx context.Context, set *pflag.FlagSet, name string, streams genericiooptions.IOStreams) (*queryOptions, error) {
	if err := f.validate(set); err != nil {
		return nil, err
	}
	o := &queryOptions{
		name: name, count: f.count, keysOnly: f.keysOnly, explain: f.explain, values: f.values, groupBy: f.groupBy,
		// All objects have been read for this command, so that looking at each of them costs little more.
		asked: query.Options{SortBy: f.sortBy, Descending: f.descending, Limit: f.limit, Continue: f.next, AllowScan: true},
	}
	var err error
	if o.style, err = f.style.Style(); err != nil {
		return nil, err
	}
	if o.query, err = f.conditions.Query(); err != nil {
		return nil, err
	}
	o.Reader, err = f.reader.Reader(ctx, []string{name}, f.style.Cached(), streams)
	return o, err
}

// validate refuses flags that make no sense together.
func (f *queryFlags) validate(set *pflag.FlagSet) error {
	var forms []string
	for _, name := range []string{"count", "keys-only", "values", "group-by", "explain"} {
		if set.Changed(name) {
			forms = append(forms, name)
		}
	}
	switch {
	case len(forms) > 1:
		return exit.Usagef("--%s and --%s exclude each other: give one of them", forms[0], forms[1])
	case len(forms) == 1 && set.Changed("output"):
		return exit.Usagef("--%s and --output exclude each other: give one of them", forms[0])
	case f.limit < 0:
		return exit.Usagef("--limit is %d: it must not be negative; 0 prints all", f.limit)
	case f.descending && f.sortBy == "":
		return exit.Usagef("--descending needs --sort-by")
	case (f.limit > 0 || f.next != "" || f.sortBy != "") && len(forms) == 1 && (f.count || f.values != "" || f.groupBy != ""):
		return exit.Usagef("--%s looks at all objects, in no order: leave out --limit, --continue and --sort-by", forms[0])
	case f.explain && (f.limit > 0 || f.next != ""):
		return exit.Usagef("--explain prints no objects, and the plan is the same for each part of them: leave out --limit and --continue")
	case len(forms) == 1 && tableFlag(set, forms[0]) != "":
		return exit.Usagef("--%s prints no table of objects: leave out --%s", forms[0], tableFlag(set, forms[0]))
	case set.Changed("values") && f.values == "", set.Changed("group-by") && f.groupBy == "":
		return exit.Usagef("--%s needs the name of an index", forms[0])
	}
	return nil
}

// tableFlag names a flag that is about tables of objects and means nothing beside form, if one is given. The table of
// --group-by has headers, too.
func tableFlag(set *pflag.FlagSet, form string) string {
	for _, name := range []string{"show-kind", "show-labels", "label-columns", "no-headers"} {
		if set.Changed(name) && (name != "no-headers" || form != "group-by") {
			return name
		}
	}
	return ""
}
