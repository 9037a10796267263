package dump

import (
	"context"
	"fmt"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/cli/exit"
	"github.com/crdcache/crdcache/internal/cli/output"
	"github.com/crdcache/crdcache/internal/cli/target"
)

// options are what flags and arguments amount to.
type options struct {
	genericiooptions.IOStreams
	target    *target.Target
	types     []string
	format    output.Format
	noHeaders bool
	cached    dynamicinformer.ResourceOptions
}

func (f *flags) toOptions(ctx context.Context, args []string, streams genericiooptions.IOStreams) (*options, error) {
	streams = f.target.Streams(streams)
	format, err := output.ParseFormat(f.output)
	if err != nil {
		return nil, exit.Usagef("%v", err)
	}
	config, err := f.configs.Load(func(text string) { fmt.Fprintf(streams.ErrOut, "warning: %s\n", text) })
	if err != nil {
		return nil, err
	}
	types, err := config.TypeNames(args)
	if err != nil {
		return nil, err
	}
	on, err := f.target.Target(ctx, streams)
	if err != nil {
		return nil, err
	}
	o := &options{IOStreams: streams, target: on, types: types, format: format, noHeaders: f.noHeaders}
	if !f.showManagedFields {
		o.cached.Transform = dynamicinformer.StripManagedFields
	}
	return o, f.selectors.Apply(&o.cached)
}
