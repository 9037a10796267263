package session

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// ReadFlags say which objects are read, from where, and which indexes they get.
type ReadFlags struct {
	target    *ServerFlags
	selectors SelectorFlags
	configs   ConfigFlags
	cache     CacheFlags
}

// NewReadFlags returns flags with kubectl's defaults.
func NewReadFlags() *ReadFlags { return &ReadFlags{target: NewServerFlags()} }

// Add adds the flags.
func (f *ReadFlags) Add(set *pflag.FlagSet) {
	f.target.Add(set)
	f.target.AddAllNamespaces(set)
	f.selectors.Add(set)
	f.configs.Add(set)
}

// AddNamed is Add for verbs that take an object by its name, which no selector finds.
func (f *ReadFlags) AddNamed(set *pflag.FlagSet) {
	f.target.Add(set)
	f.target.AddAllNamespaces(set)
	f.configs.Add(set)
}

// AddCache adds the flags that say whether a server that keeps types may take the place of the cluster.
func (f *ReadFlags) AddCache(set *pflag.FlagSet) { f.cache.add(set) }

// Complete makes the shell complete the flags, and arguments that are types: several if many is set.
func (f *ReadFlags) Complete(cmd *cobra.Command, many bool) {
	f.target.Complete(cmd)
	f.cache.complete(cmd)
	cmd.ValidArgsFunction = f.target.CompleteTypes(many, f.configs.ResourceNames)
}

// CompleteNamed is Complete for verbs whose arguments may name objects behind their type.
func (f *ReadFlags) CompleteNamed(cmd *cobra.Command, many bool) {
	f.Complete(cmd, many)
	cmd.ValidArgsFunction = f.completeNames(many, f.target.CompleteTypes(many, f.configs.ResourceNames))
}

// CompleteIndexes makes the shell complete the values of flags with names of indexes; suffix is what comes after one.
func (f *ReadFlags) CompleteIndexes(cmd *cobra.Command, suffix string, flags ...string) {
	f.configs.Complete(cmd, suffix, flags...)
}

// CompleteSorted is CompleteIndexes for flags that take sorted indexes.
func (f *ReadFlags) CompleteSorted(cmd *cobra.Command, flags ...string) {
	f.configs.CompleteSorted(cmd, flags...)
}

// NeedTypes is the check of the arguments of a verb that takes types.
func NeedTypes(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return exit.Usagef("name at least one type, as in '%s certificates.cert-manager.io'", cmd.CommandPath())
	}
	return nil
}

// Streams are those of a verb, without what --quiet suppresses.
func (f *ReadFlags) Streams(streams genericiooptions.IOStreams) genericiooptions.IOStreams {
	return f.target.Streams(streams)
}

// Reader checks the flags and the types that are the arguments, and reads configs, kubeconfig and files; it asks no API
// server. Objects are cached as cached says, with the selectors of the flags.
func (f *ReadFlags) Reader(ctx context.Context, args []string, cached dynamicinformer.ResourceOptions, streams genericiooptions.IOStreams) (*Reader, error) {
	r := &Reader{IOStreams: f.Streams(streams), cached: cached}
	err := f.selectors.Apply(&r.cached)
	if err != nil {
		return nil, err
	}
	if r.Config, err = f.configs.Load(r.Warn); err != nil {
		return nil, err
	}
	if r.types, err = r.Config.TypeNames(args); err != nil {
		return nil, err
	}
	if r.Target, err = f.target.Target(ctx, r.IOStreams); err != nil {
		return nil, err
	}
	if err := f.cache.validate(r.Target.Offline()); err != nil {
		return nil, err
	}
	return r, f.cache.apply(ctx, r)
}

// Warn tells a person on stderr something that is no error.
func (r *Reader) Warn(text string) { fmt.Fprintf(r.ErrOut, "warning: %s\n", text) }
