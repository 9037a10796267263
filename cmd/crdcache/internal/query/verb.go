// Package query implements the command that finds objects by indexes and conditions.
package query

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

type verb struct {
	streams    genericiooptions.IOStreams
	flags      session.ReadFlags
	queryFlags session.QueryFlags
	styleFlags session.StyleFlags
	options    query.Options

	count    bool
	keysOnly bool
	groupBy  []string
	compute  []string
	dangling string
	explain  bool

	readers         []*session.Reader
	output          *output
	*session.Reader // of the current cluster
	// pageFull is set if the page ends before the current cluster.
	pageFull    bool
	typeName    string
	query       query.Query
	style       print.Style
	aggregation query.Aggregation
}

func New(streams genericiooptions.IOStreams) *cobra.Command {
	// All objects are in memory, so evaluating each of them costs little.
	o := &verb{streams: streams, options: query.Options{AllowScan: true}}
	cmd := &cobra.Command{
		Use:        "query TYPE [flags]",
		SuggestFor: []string{"find", "search", "select", "where"},
		Short:      "Find objects of a type by indexes and conditions",
		Args:       session.ExactlyOne("type", "certificates.cert-manager.io"),
		RunE:       session.RunE(o.complete, o.run),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *verb) addFlags(cmd *cobra.Command) {
	o.flags.Add(cmd, false)
	o.flags.AddContexts(cmd)
	o.flags.AddSelectors(cmd.Flags())
	o.flags.AddCache(cmd)
	o.queryFlags.Add(cmd, &o.flags.ConfigFlags)
	o.styleFlags.Add(cmd)
	set := cmd.Flags()
	set.StringVar(&o.options.SortBy, "sort-by", "",
		"Sort by index, path, name, namespace or age. An index must be sorted. Several are separated by commas, each optionally followed by desc, as in '.spec.tier,expiry desc'. Default: by namespace and name.")
	set.IntVar(&o.options.Limit, "limit", 0,
		"Maximum number of objects; 0 means all. If there are more, a continue token is printed on stderr.")
	set.StringVar(&o.options.Continue, "continue", "", "Continue token of the same query with --limit.")
	set.BoolVar(&o.count, "count", false, "Print only the number of objects.")
	set.BoolVar(&o.keysOnly, "keys-only", false, "Print only namespace/name.")
	set.StringArrayVar(&o.groupBy, "group-by", nil, "")
	set.StringArrayVar(&o.compute, "compute", nil, "")
	set.StringVar(&o.dangling, "dangling", "", "")
	set.Lookup("dangling").NoOptDefVal = anyReference
	set.BoolVar(&o.explain, "explain", false, "Print the query plan instead of the objects.")
	o.flags.CompleteIndexes(cmd, "group-by", "", nil)
	o.flags.CompleteIndexes(cmd, "sort-by", "", func(i *indexers.Index) bool { return i.Sorted })
}

// anyReference is the value of --dangling without a name.
const anyReference = "*"

func (o *verb) complete(cmd *cobra.Command, args []string) (err error) {
	o.typeName = args[0]
	if err := o.validate(cmd.Flags()); err != nil {
		return err
	}
	if o.style, err = o.styleFlags.Style(); err != nil {
		return err
	}
	if o.query, err = o.queryFlags.Query(); err != nil {
		return err
	}
	if cmd.Flags().Changed("dangling") {
		dangling := query.Dangling(strings.TrimSuffix(o.dangling, anyReference))
		if o.queryFlags.HasConditions() {
			dangling = query.And(o.query, dangling)
		}
		o.query = dangling
	}
	if err := o.parseGroups(); err != nil {
		return err
	}
	usesReferences, _ := query.UsesReferences(o.query)
	o.flags.OnlyNamed = !usesReferences
	o.flags.PrintsTables = o.style.Format.IsTable() && len(o.resultFlags(cmd.Flags())) == 0
	o.flags.OnlyIdentities = (o.count || o.keysOnly) && o.options.SortBy == "" &&
		!o.queryFlags.HasConditions() && !usesReferences
	o.readers, err = o.flags.Readers(cmd.Context(), args, o.styleFlags.InformerOptions(), o.streams)
	if err != nil {
		return err
	}
	o.output = &output{Output: print.NewOutput(o.flags.Streams(o.streams), o.style)}
	return o.startPage()
}

// numericFlags are the flags with numeric results. numericFormats are their output formats.
var (
	numericFlags   = []string{"count", "group-by", "compute"}
	numericFormats = []string{print.TableOptions, print.JSON, print.CSV}
)

// resultFlags returns the given flags that replace the objects by another result.
func (o *verb) resultFlags(set *pflag.FlagSet) []string {
	return slices.DeleteFunc([]string{"count", "keys-only", "group-by", "compute", "explain"},
		func(name string) bool { return !set.Changed(name) })
}

func (o *verb) validate(set *pflag.FlagSet) error {
	resultFlags := o.resultFlags(set)
	if len(resultFlags) == 2 && resultFlags[0] == "group-by" && resultFlags[1] == "compute" {
		resultFlags = resultFlags[:1]
	}
	switch {
	case len(resultFlags) > 1:
		return session.Usagef("--%s and --%s cannot be used together: use one of them", resultFlags[0],
			resultFlags[1])
	case len(resultFlags) == 1 && set.Changed("output") && !slices.Contains(numericFlags, resultFlags[0]):
		return session.Usagef("--%s and --output cannot be used together: use one of them", resultFlags[0])
	case len(resultFlags) == 1 && !slices.Contains(numericFormats, o.styleFlags.Output) &&
		slices.Contains(numericFlags, resultFlags[0]):
		return session.Usagef("--%s is printed as %s, not as %s", resultFlags[0],
			strings.Join(numericFormats, " or "), print.OneSafeLine(o.styleFlags.Output))
	case o.options.Limit < 0:
		return session.Usagef("--limit is %d: it must not be negative; 0 prints all", o.options.Limit)
	case (o.options.Limit > 0 || o.options.Continue != "" || o.options.SortBy != "") &&
		len(resultFlags) == 1 &&
		!o.explain && !o.keysOnly:
		return session.Usagef("--%s uses all objects: omit --limit, --continue and --sort-by", resultFlags[0])
	case o.explain && (o.options.Limit > 0 || o.options.Continue != ""):
		return session.Usagef("--explain prints the plan, which does not depend on the page: omit --limit and --continue")
	case len(resultFlags) == 1 && tableFlag(set, resultFlags[0]) != "":
		return session.Usagef("--%s does not print a table of objects: omit --%s", resultFlags[0],
			tableFlag(set, resultFlags[0]))
	case set.Changed("dangling") && o.dangling == "":
		return session.Usagef("--dangling= has no reference name; use --dangling alone for all references")
	}
	return nil
}

// tableFlag returns a given flag that has no effect with resultFlag. --group-by and --compute print a table,
// so they accept --no-headers.
func tableFlag(set *pflag.FlagSet, resultFlag string) string {
	for _, name := range []string{"show-kind", "show-labels", "label-columns", "no-headers"} {
		if set.Changed(name) && (name != "no-headers" || resultFlag != "group-by" &&
			resultFlag != "compute") {
			return name
		}
	}
	return ""
}
