package dump

import (
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/internal/cli/exit"
	"github.com/crdcache/crdcache/internal/cli/output"
	"github.com/crdcache/crdcache/internal/cli/target"
)

const (
	formatTable = "table"
	formatWide  = "wide"
)

var formats = []string{output.JSON, output.YAML, output.Name, formatTable, formatWide}

// options are what flags and arguments amount to.
type options struct {
	genericiooptions.IOStreams
	target            *target.Target
	types             []string
	format            string
	noHeaders         bool
	showManagedFields bool
}

func (f *flags) toOptions(args []string, streams genericiooptions.IOStreams) (*options, error) {
	if err := target.OneOf("output format", f.output, formats); err != nil {
		return nil, err
	}
	types, err := splitTypes(args)
	if err != nil {
		return nil, err
	}
	on, err := f.target.Target(streams)
	if err != nil {
		return nil, err
	}
	return &options{
		IOStreams: streams, target: on, types: types,
		format: f.output, noHeaders: f.noHeaders, showManagedFields: f.showManagedFields,
	}, nil
}

// splitTypes takes types as separate arguments and with commas between them, without repetition.
func splitTypes(args []string) ([]string, error) {
	var types []string
	for _, arg := range args {
		for name := range strings.SplitSeq(arg, ",") {
			if name == "" {
				return nil, exit.Usagef("%q has an empty type name", arg)
			}
			if strings.Contains(name, "/") {
				return nil, exit.Usagef("%q looks like TYPE/NAME: dump takes types and prints all their objects", name)
			}
			if _, err := discovery.ParseName(name); err != nil {
				return nil, exit.Usagef("%v", err)
			}
			if !slices.Contains(types, name) {
				types = append(types, name)
			}
		}
	}
	return types, nil
}
