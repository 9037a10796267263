package query

import (
	"context"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/reader"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/show"
	"github.com/crdcache/crdcache/indexers/query"
)

// options are what flags and arguments amount to.
type options struct {
	*reader.Reader
	name  string // of the type, as it was given
	query query.Query
	asked query.Options
	style show.Style

	count, keysOnly, explain bool
	values, groupBy          string // index names
}

func (f *flags) toOptions(ctx context.Context, set *pflag.FlagSet, name string, streams genericiooptions.IOStreams) (*options, error) {
	if err := f.validate(set); err != nil {
		return nil, err
	}
	o := &options{
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
