package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/local"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
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

// CompleteIndexes makes the shell complete the values of flags with names of indexes; suffix is what comes
// after one.
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
		return exit.Usagef("name at least one type, as in '%s certificates.cert-manager.io'",
			cmd.CommandPath())
	}
	return nil
}

// Streams are those of a verb, without what --quiet suppresses.
func (f *ReadFlags) Streams(streams genericiooptions.IOStreams) genericiooptions.IOStreams {
	return f.target.Streams(streams)
}

// Reader checks the flags and the types that are the arguments, and reads configs, kubeconfig and files; it
// asks no API server. Objects are cached as cached says, with the selectors of the flags.
func (f *ReadFlags) Reader(ctx context.Context, args []string, cached dynamicinformer.ResourceOptions,
	streams genericiooptions.IOStreams) (*Reader, error) {
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

// Values of --cache, besides the path of a socket.
const (
	cacheAuto = "auto"
	cacheNone = "none"
)

// CacheFlags say whether a server that keeps types may take the place of the cluster.
type CacheFlags struct {
	cache   string
	verbose bool
	set     *pflag.FlagSet // nil where there are no such flags
}

func (f *CacheFlags) add(set *pflag.FlagSet) {
	f.set = set
	set.StringVar(&f.cache, "cache", cacheAuto,
		"Whether the server that 'serve' runs may take the place of the cluster, for types that it keeps and is in contact about: auto asks it where there is one; none reads the cluster; PATH is the socket of a server that has to be there.")
	set.BoolVarP(&f.verbose, "verbose", "v", false,
		"Say on stderr of each type whether a server or the cluster is read, and why.")
}

func (f *CacheFlags) complete(cmd *cobra.Command) {
	if f.set != nil {
		print.CompleteWords(cmd, "cache", []string{cacheAuto, cacheNone})
	}
}

// validate refuses what is neither a word nor a path, and a server beside files.
func (f *CacheFlags) validate(offline bool) error {
	if f.set == nil {
		return nil
	}
	for _, name := range []string{"cache", "verbose"} {
		if offline && f.set.Changed(name) {
			return exit.Usagef("--from and --%s exclude each other: no server keeps what is in files", name)
		}
	}
	if f.cache != cacheAuto && f.cache != cacheNone && !strings.Contains(f.cache, "/") {
		return exit.
			Usagef(
				"--cache is %q: give %s, %s, or the path of a server's socket, which 'serve status' prints",
				f.cache, cacheAuto, cacheNone)
	}
	return nil
}

// apply has the reader ask the server for what it keeps. Where there is none, nothing changes.
func (f *CacheFlags) apply(ctx context.Context, r *Reader) error {
	r.verbose = f.verbose
	if f.set == nil || r.Target.Offline() {
		r.noServer = errors.New("files are read")
		return nil
	}
	var err error
	switch f.cache {
	case cacheNone:
		r.noServer = errors.New("--cache says so")
		return nil
	case cacheAuto:
		if r.server, r.noServer = local.NewClient(ctx, r.Target.Config); r.noServer == nil {
			_, r.noServer = r.server.Info(ctx) // one that does not answer is not waited for again and again
		}
		if r.noServer != nil {
			r.server = nil
			r.Say("the cluster is read: %v", r.noServer)
			return nil
		}
	default:
		if r.server, err = local.NewClientAt(ctx, r.Target.Config, f.cache); err != nil {
			return fmt.Errorf("--cache: %w", err)
		}
	}
	r.Target.Config, err = local.NewTransport(r.server, r.Target.Config,
		func(text string) { r.Say("%s", text) })
	return err
}

// HasServer reports whether there is a server that keeps types.
func (r *Reader) HasServer() bool { return r.server != nil }

// Say tells a person who asks for it (-v) what is read.
func (r *Reader) Say(format string, args ...any) {
	if r.verbose {
		fmt.Fprintf(r.ErrOut, "note: %s\n", print.Line(fmt.Sprintf(format, args...)))
	}
}

// SelectorFlags are the flags that limit which objects the server sends.
type SelectorFlags struct{ label, field string }

// Add adds them under kubectl's names.
func (f *SelectorFlags) Add(set *pflag.FlagSet) {
	set.StringVarP(&f.label, "selector", "l", "",
		"Read only objects whose labels match, as in 'app=web,tier!=cache' or 'env in (prod,stage)'; the server applies it.")
	set.StringVar(&f.field, "field-selector", "",
		"Read only objects whose fields match, as in 'metadata.name=web'; the server applies it and knows few fields.")
}

// Apply parses the selectors into options.
func (f *SelectorFlags) Apply(options *dynamicinformer.ResourceOptions) error {
	if f.label != "" {
		selector, err := labels.Parse(f.label)
		if err != nil {
			return exit.Usagef("--selector (-l): %v", err)
		}
		options.LabelSelector = selector
	}
	if f.field != "" {
		selector, err := fields.ParseSelector(f.field)
		if err != nil {
			return exit.Usagef("--field-selector: %v", err)
		}
		options.FieldSelector = selector
	}
	return nil
}
