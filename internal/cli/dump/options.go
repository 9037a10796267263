package dump

import (
	"k8s.io/cli-runtime/pkg/genericiooptions"

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
	types, err := target.SplitTypes(args)
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
