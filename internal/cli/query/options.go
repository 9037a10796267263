package query

import (
	"context"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/cli/exit"
	"github.com/crdcache/crdcache/internal/cli/indexed"
	"github.com/crdcache/crdcache/internal/cli/output"
	"github.com/crdcache/crdcache/internal/cli/target"
)

// options are what flags and arguments amount to.
type options struct {
	genericiooptions.IOStreams
	target *target.Target
	config *indexed.Config
	name   string // of the type
	query  query.Query
	asked  query.Options
	cached dynamicinformer.ResourceOptions

	count, keysOnly, explain bool
	values, groupBy          string // index names

	format    output.Format
	noHeaders bool
}

func (f *flags) toOptions(ctx context.Context, set *pflag.FlagSet, name string, streams genericiooptions.IOStreams) (*options, error) {
	streams = f.target.Streams(streams)
	if err := f.validate(set); err != nil {
		return nil, err
	}
	o := &options{
		IOStreams: streams, noHeaders: f.noHeaders,
		count: f.count, keysOnly: f.keysOnly, explain: f.explain, values: f.values, groupBy: f.groupBy,
		// All objects have been read for this command, so that looking at each of them costs little more.
		asked: query.Options{SortBy: f.sortBy, Descending: f.descending, Limit: f.limit, Continue: f.next, AllowScan: true},
	}
	var err error
	if o.format, err = output.ParseFormat(f.output); err != nil {
		return nil, exit.Usagef("%v", err)
	}
	if o.query, err = f.conditions.Query(); err != nil {
		return nil, err
	}
	if o.config, err = f.configs.Load(o.Warn); err != nil {
		return nil, err
	}
	if o.name, err = o.config.TypeName(name); err != nil {
		return nil, err
	}
	if _, err = target.SplitTypes([]string{o.name}); err != nil {
		return nil, err
	}
	if !f.showManagedFields {
		o.cached.Transform = dynamicinformer.StripManagedFields
	}
	if err = f.selectors.Apply(&o.cached); err != nil {
		return nil, err
	}
	o.target, err = f.target.Target(ctx, streams)
	return o, err
}

// validate refuses flags that make no sense together.
func (f *flags) validate(set *pflag.FlagSet) error {
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
	case set.Changed("values") && f.values == "", set.Changed("group-by") && f.groupBy == "":
		return exit.Usagef("--%s needs the name of an index", forms[0])
	}
	return nil
}
