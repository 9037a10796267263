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
		Short:      "Find objects of a type by indexes and conditions",
		Long: "Print the objects of a type that match all conditions, or with --or any of them.\n" +
			"Conditions on indexes use =, !=, <, <=, >, >=, ^= (prefix), contains, =~\n" +
			"(regular expression), 'in (a, b)', 'in 10.0.0.0/8', NAME (has a value) and\n" +
			"!NAME, joined by &&, || and parentheses. Indexes are declared in --config.",
		Annotations: detailsAnnotation("Times can be relative to now, as in 'expiry<now+14d'. TYPE can be the name of a\n" +
			"resource in --config. --where, --sort-by, --group-by and --compute take paths.\n" +
			"The order is by namespace and name unless --sort-by is set.\n\n" +
			"--dangling finds objects that refer to missing objects: their owners, and the\n" +
			"references that --config declares. The types of the referenced objects are read\n" +
			"as well. In --index this condition is dangling(NAME), and 'refersTo(Kind.group,\n" +
			"namespace/name)' finds the objects that refer to an object."),
		Example: "  crdcache query certs --config indexes.yaml --index issuer=letsencrypt\n" +
			"  crdcache query certs --config indexes.yaml --index 'expiry<now+14d'\n" +
			"  crdcache query certs -A --config indexes.yaml --group-by issuer\n" +
			"  crdcache query certs -A --where '@.spec.dnsNames[?(@ == \"example.com\")]'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("name one type, as in '%s certificates.cert-manager.io'; got %d arguments",
					cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: newRunE(streams, f.toOptions),
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
		"Sort by index, path, name, namespace or age. An index must be sorted. Several are separated by commas, each optionally followed by desc, as in '.spec.tier,expiry desc'. Default: by namespace and name.")
	set.BoolVar(&f.descending, "descending", false,
		"Sort in descending order. Needs --sort-by.")
	set.IntVar(&f.limit, "limit", 0,
		"Maximum number of objects; 0 means all. If there are more, a continue token is printed on stderr.")
	set.StringVar(&f.next, "continue", "",
		"Continue token of the same query with --limit.")
	set.BoolVar(&f.count, "count", false, "Print only the number of objects.")
	set.BoolVar(&f.keysOnly, "keys-only", false, "Print only namespace/name.")
	set.StringVar(&f.values, "values", "", "Print each value of this index with its count. The count is the number of objects.")
	set.StringArrayVar(&f.groupBy, "group-by", nil,
		"Group by an index or path, and count each group. The largest groups come first. Separate several indexes or paths by commas. The output is a table, json or csv, as for --compute and --count. May be repeated.")
	set.StringArrayVar(&f.compute, "compute", nil,
		"Print sum, avg, min or max of an index or path. For example 'sum(.spec.replicas)' or 'sum(.spec.cpu as quantity)'. Computed for each group of --group-by, or for all objects. May be repeated.")
	set.StringVar(&f.dangling, "dangling", "",
		"Match objects with a missing reference. The reference has this name, or with --dangling alone any name.")
	set.Lookup("dangling").NoOptDefVal = anyReference
	set.BoolVar(&f.explain, "explain", false, "Print the query plan instead of the objects.")
}

// anyReference is the value of --dangling without a name.
const anyReference = "*"

// queryOptions are the validated flags and arguments of query.
type queryOptions struct {
	*session.Reader
	name    string // type name as given
	query   query.Query
	options query.Options
	style   print.Style

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
		options: query.Options{SortBy: f.sortBy, Descending: f.descending, Limit: f.limit, Continue: f.next,
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
		if f.conditions.HasConditions() {
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

// numericForms are the flags with numeric results. numericFormats are their output formats.
var (
	numericForms   = []string{"count", "group-by", "compute"}
	numericFormats = []string{print.Table, print.JSON, print.CSV}
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
		return exit.Usagef("--%s and --%s cannot be used together: use one of them", forms[0], forms[1])
	case len(forms) == 1 && set.Changed("output") && !slices.Contains(numericForms, forms[0]):
		return exit.Usagef("--%s and --output cannot be used together: use one of them", forms[0])
	case len(forms) == 1 && !slices.Contains(numericFormats, f.style.Output()) &&
		slices.Contains(numericForms, forms[0]):
		return exit.Usagef("--%s is printed as %s, not as %s", forms[0],
			strings.Join(numericFormats, " or "), print.OneSafeLine(f.style.Output()))
	case f.limit < 0:
		return exit.Usagef("--limit is %d: it must not be negative; 0 prints all", f.limit)
	case f.descending && f.sortBy == "":
		return exit.Usagef("--descending needs --sort-by")
	case (f.limit > 0 || f.next != "" || f.sortBy != "") && len(forms) == 1 && !f.explain && !f.keysOnly:
		return exit.Usagef(
			"--%s uses all objects: omit --limit, --continue and --sort-by", forms[0])
	case f.explain && (f.limit > 0 || f.next != ""):
		return exit.Usagef("--explain prints the plan, which does not depend on the page: omit --limit and --continue")
	case len(forms) == 1 && tableFlag(set, forms[0]) != "":
		return exit.Usagef("--%s does not print a table of objects: omit --%s", forms[0],
			tableFlag(set, forms[0]))
	case set.Changed("dangling") && f.dangling == "":
		return exit.Usagef("--dangling= has no reference name; use --dangling alone for all references")
	case set.Changed("values") && f.values == "":
		return exit.Usagef("--%s needs the name of an index", forms[0])
	}
	return nil
}

// tableFlag returns a given flag that has no effect with form. --group-by and --compute print a table, so
// they accept --no-headers.
func tableFlag(set *pflag.FlagSet, form string) string {
	for _, name := range []string{"show-kind", "show-labels", "label-columns", "no-headers"} {
		if set.Changed(name) && (name != "no-headers" || form != "group-by" && form != "compute") {
			return name
		}
	}
	return ""
}
