package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/indexers/query"
)

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
	groupBy  []string
	compute  []string
	dangling string
	explain  bool
}

func newQuery(streams genericiooptions.IOStreams) *cobra.Command {
	f := &queryFlags{reader: session.NewReadFlags()}
	cmd := &cobra.Command{
		Use:        "query TYPE [flags]",
		SuggestFor: []string{"find", "search", "select", "where"},
		Short:      "Find objects of a type by indexes",
		Long: "Sync the type, then print the objects that fulfil all conditions (with --or: any of them), by namespace and name\n" +
			"unless --sort-by asks for another order.\n\n" +
			"--index takes name=value, and !=, <, <=, >, >=, ^= (begins with), contains, =~ (a regular expression),\n" +
			"'in (a, b)', 'in 10.0.0.0/8', a name alone (has a value) and !name (has none); && , || and parentheses join\n" +
			"them. Times may be relative to now, as in 'expiry<now+14d'. The indexes come from --config, where TYPE may be\n" +
			"the name of a resource. --where takes a path or a condition on @, and needs no config, and\n" +
			"--sort-by, --group-by and --compute take paths, too.\n\n" +
			"--dangling finds objects that refer to something that does not exist: their owners, and what the references of\n" +
			"--config say. The types at the other end are read, too. In --index this is dangling(NAME), and\n" +
			"'refersTo(Kind.group, namespace/name)' is what refers to an object.",
		Example: "  crdcache query certs --config indexes.yaml --index issuer=letsencrypt\n" +
			"  crdcache query certs --config indexes.yaml --index 'expiry<2026-03-01T00:00:00Z' --sort-by expiry\n" +
			"  crdcache query certs --config indexes.yaml --group-by issuer\n" +
			"  crdcache query certs -A --config indexes.yaml --group-by issuer,namespace --compute 'min(expiry)'\n" +
			"  crdcache query certs -A --config indexes.yaml --dangling\n" +
			"  crdcache query certificates.cert-manager.io -A --where '@.spec.dnsNames[?(@ == \"example.com\")]'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("name one type, as in '%s certificates.cert-manager.io'; got %d arguments",
					cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: runs(streams, f.toOptions),
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
	f.reader.AddCache(set)
	f.conditions.Add(set)
	f.style.Add(set)
	set.StringVar(&f.sortBy, "sort-by", "",
		"Sort by the values of this sorted index, by this path, which needs no config, or by name, namespace or age; several with commas, each with desc, as in '.spec.tier,expiry desc'. Default: by namespace and name.")
	set.BoolVar(&f.descending, "descending", false,
		"Sort from the greatest value to the least; with --sort-by.")
	set.IntVar(&f.limit, "limit", 0,
		"Print at most this many objects, and on stderr the token to go on with; 0 prints all.")
	set.StringVar(&f.next, "continue", "",
		"Go on after an earlier result of the same query that --limit cut short.")
	set.BoolVar(&f.count, "count", false, "Print only how many objects there are.")
	set.BoolVar(&f.keysOnly, "keys-only", false, "Print only namespace/name of each object.")
	set.StringVar(&f.values, "values", "", "Print the values of this index that the objects have.")
	set.StringArrayVar(&f.groupBy, "group-by", nil,
		"Print the values of this index, or at this path, with the number of objects, the most frequent first; several with commas. As a table, json or csv (--output), as are --compute and --count. May be repeated.")
	set.StringArrayVar(&f.compute, "compute", nil,
		"Print sum, avg, min or max of the values of an index or a path, as in 'sum(.spec.replicas)' or 'sum(.spec.cpu as quantity)', for each group of --group-by, or of all. May be repeated.")
	set.StringVar(&f.dangling, "dangling", "",
		"Only objects that refer to something that does not exist, by the reference of this name or (--dangling alone) by any.")
	set.Lookup("dangling").NoOptDefVal = anyReference
	set.BoolVar(&f.explain, "explain", false, "Print how the query is answered instead of the objects.")
}

// anyReference is the value of --dangling without a name.
const anyReference = "*"

// queryOptions are the validated flags and arguments of query.
type queryOptions struct {
	*session.Reader
	name  string // type name as given
	query query.Query
	asked query.Options
	style print.Style

	count, keysOnly, explain bool
	values                   string // name of an index
	groups                   query.Aggregation
}

func (f *queryFlags) toOptions(cmd *cobra.Command, args []string,
	streams genericiooptions.IOStreams) (*queryOptions, error) {
	set, name := cmd.Flags(), args[0]
	if err := f.validate(set); err != nil {
		return nil, err
	}
	o := &queryOptions{
		name: name, count: f.count, keysOnly: f.keysOnly, explain: f.explain, values: f.values,
		// All objects are in memory, so evaluating each of them costs little.
		asked: query.Options{SortBy: f.sortBy, Descending: f.descending, Limit: f.limit, Continue: f.next,
			AllowScan: true},
	}
	var err error
	if o.style, err = f.style.Style(); err != nil {
		return nil, err
	}
	if o.query, err = f.conditions.Query(); err != nil {
		return nil, err
	}
	if set.Changed("dangling") {
		dangling := query.Dangling(strings.TrimSuffix(f.dangling, anyReference))
		if f.conditions.Given() {
			dangling = query.And(o.query, dangling)
		}
		o.query = dangling
	}
	if o.groups, err = f.aggregation(); err != nil {
		return nil, err
	}
	o.Reader, err = f.reader.Reader(cmd.Context(), []string{name}, f.style.Cached(), streams)
	return o, err
}

// numericForms are the flags whose results are numbers. numericFormats are their output formats.
var (
	numbers       = []string{"count", "group-by", "compute"}
	numberFormats = []string{print.Table, print.JSON, print.CSV}
)

// validate rejects incompatible flags.
func (f *queryFlags) validate(set *pflag.FlagSet) error {
	var forms []string
	for _, name := range []string{"count", "keys-only", "values", "group-by", "compute", "explain"} {
		if set.Changed(name) {
			forms = append(forms, name)
		}
	}
	if len(forms) == 2 && forms[0] == "group-by" && forms[1] == "compute" {
		forms = forms[:1]
	}
	switch {
	case len(forms) > 1:
		return exit.Usagef("--%s and --%s exclude each other: give one of them", forms[0], forms[1])
	case len(forms) == 1 && set.Changed("output") && !slices.Contains(numbers, forms[0]):
		return exit.Usagef("--%s and --output exclude each other: give one of them", forms[0])
	case len(forms) == 1 && !slices.Contains(numberFormats, f.style.Output()) &&
		slices.Contains(numbers, forms[0]):
		return exit.Usagef("--%s is printed as %s, and not as %s", forms[0],
			strings.Join(numberFormats, " or "), print.Line(f.style.Output()))
	case f.limit < 0:
		return exit.Usagef("--limit is %d: it must not be negative; 0 prints all", f.limit)
	case f.descending && f.sortBy == "":
		return exit.Usagef("--descending needs --sort-by")
	case (f.limit > 0 || f.next != "" || f.sortBy != "") && len(forms) == 1 && !f.explain && !f.keysOnly:
		return exit.Usagef("--%s looks at all objects, in no order: leave out --limit, --continue and --sort-by", forms[0])
	case f.explain && (f.limit > 0 || f.next != ""):
		return exit.Usagef("--explain prints no objects, and the plan is the same for each part of them: leave out --limit and --continue")
	case len(forms) == 1 && tableFlag(set, forms[0]) != "":
		return exit.Usagef("--%s prints no table of objects: leave out --%s", forms[0],
			tableFlag(set, forms[0]))
	case set.Changed("dangling") && f.dangling == "":
		return exit.Usagef("--dangling= names no reference; --dangling alone stands for all")
	case set.Changed("values") && f.values == "":
		return exit.Usagef("--%s needs the name of an index", forms[0])
	}
	return nil
}

// tableFlag returns a given flag that has no effect with form. The tables of --group-by and --compute also
// have headers.
func tableFlag(set *pflag.FlagSet, form string) string {
	for _, name := range []string{"show-kind", "show-labels", "label-columns", "no-headers"} {
		if set.Changed(name) && (name != "no-headers" || form != "group-by" && form != "compute") {
			return name
		}
	}
	return ""
}
