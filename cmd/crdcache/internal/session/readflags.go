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
	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// ReadFlags select the objects to read, their source and their indexes.
type ReadFlags struct {
	target    *ServerFlags
	selectors SelectorFlags
	configs   ConfigFlags
	cache     CacheFlags
}

// NewReadFlags returns flags with kubectl's defaults.
func NewReadFlags() *ReadFlags { return &ReadFlags{target: NewServerFlags()} }

func (f *ReadFlags) Add(set *pflag.FlagSet) {
	f.target.Add(set)
	f.target.AddAllNamespaces(set)
	f.selectors.Add(set)
	f.configs.Add(set)
}

// AddNamed adds the flags for verbs that take object names, which exclude selectors.
func (f *ReadFlags) AddNamed(set *pflag.FlagSet) {
	f.target.Add(set)
	f.target.AddAllNamespaces(set)
	f.configs.Add(set)
}

// AddCache adds the flags that control the use of the local cache server.
func (f *ReadFlags) AddCache(set *pflag.FlagSet) { f.cache.add(set) }

// Complete registers completion for the flags and for type arguments. With many it completes several types.
func (f *ReadFlags) Complete(cmd *cobra.Command, allowsMany bool) {
	f.target.Complete(cmd)
	f.cache.complete(cmd)
	cmd.ValidArgsFunction = f.target.CompleteTypes(allowsMany, f.configs.ResourceNames)
}

// CompleteNamed is Complete for verbs that accept object names after their type.
func (f *ReadFlags) CompleteNamed(cmd *cobra.Command, allowsMany bool) {
	f.Complete(cmd, allowsMany)
	cmd.ValidArgsFunction = f.completeNames(allowsMany,
		f.target.CompleteTypes(allowsMany, f.configs.ResourceNames))
}

// CompleteIndexes completes flag values with index names, each followed by suffix.
func (f *ReadFlags) CompleteIndexes(cmd *cobra.Command, suffix string, flags ...string) {
	f.configs.Complete(cmd, suffix, flags...)
}

// CompleteSorted is CompleteIndexes for flags that take sorted indexes.
func (f *ReadFlags) CompleteSorted(cmd *cobra.Command, flags ...string) {
	f.configs.CompleteSorted(cmd, flags...)
}

// NeedTypes rejects a command line without arguments.
func NeedTypes(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return exit.Usagef("name at least one type, as in '%s certificates.cert-manager.io'",
			cmd.CommandPath())
	}
	return nil
}

// Streams returns the streams without the output that --quiet suppresses.
func (f *ReadFlags) Streams(streams genericiooptions.IOStreams) genericiooptions.IOStreams {
	return f.target.Streams(streams)
}

// Reader validates the flags and type arguments, and reads configs, kubeconfig and files. It sends no request
// to the API server. Objects are cached with the given options and the selectors of the flags.
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
	if err := f.cache.validate(r.Target.ReadsFiles()); err != nil {
		return nil, err
	}
	return r, f.cache.apply(ctx, r)
}

// Warn writes a warning to stderr.
func (r *Reader) Warn(text string) { fmt.Fprintf(r.ErrOut, "warning: %s\n", text) }

// Values of --cache other than a socket path.
const (
	cacheAuto = "auto"
	cacheNone = "none"
)

// CacheFlags control the use of the local cache server.
type CacheFlags struct {
	cache   string
	verbose bool
	set     *pflag.FlagSet // nil if the verb does not have these flags
}

func (f *CacheFlags) add(set *pflag.FlagSet) {
	f.set = set
	set.StringVar(&f.cache, "cache", cacheAuto,
		"Cache server: auto, none or a socket PATH. auto uses the server of 'crdcache serve' for types with a live watch, none always reads from the cluster, and PATH is the socket of a server that must exist.")
	set.BoolVarP(&f.verbose, "verbose", "v", false,
		"Print on stderr whether each type was read from the cache server or the cluster, and why.")
	print.MarkSharedFlags(set, "cache", "verbose")
}

func (f *CacheFlags) complete(cmd *cobra.Command) {
	if f.set != nil {
		print.CompleteWords(cmd, "cache", []string{cacheAuto, cacheNone})
	}
}

func (f *CacheFlags) validate(fromFiles bool) error {
	if f.set == nil {
		return nil
	}
	for _, name := range []string{"cache", "verbose"} {
		if fromFiles && f.set.Changed(name) {
			return exit.Usagef("--from and --%s cannot be used together: files are read without a server", name)
		}
	}
	if f.cache != cacheAuto && f.cache != cacheNone && !strings.Contains(f.cache, "/") {
		return exit.Usagef("--cache is %q: give %s, %s, or the path of a server's socket, which 'serve status' prints",
			f.cache, cacheAuto, cacheNone)
	}
	return nil
}

// apply redirects the reader's requests to the local cache server, if there is one.
func (f *CacheFlags) apply(ctx context.Context, r *Reader) error {
	r.verbose = f.verbose
	if f.set == nil || r.Target.ReadsFiles() {
		r.noLocalServer = errors.New("files are read")
		return nil
	}
	var err error
	switch f.cache {
	case cacheNone:
		r.noLocalServer = errors.New("--cache is none")
		return nil
	case cacheAuto:
		if r.localServer, r.noLocalServer = localserver.NewClient(ctx,
			r.Target.Config); r.noLocalServer == nil {
			// avoids waiting repeatedly for a server that does not respond
			_, r.noLocalServer = r.localServer.Info(ctx)
		}
		if r.noLocalServer != nil {
			r.localServer = nil
			r.Notef("reading from the cluster: %v", r.noLocalServer)
			return nil
		}
	default:
		if r.localServer, err = localserver.NewClientAt(ctx, r.Target.Config, f.cache); err != nil {
			return fmt.Errorf("--cache: %w", err)
		}
	}
	r.Target.Config, err = localserver.NewTransport(r.localServer, r.Target.Config,
		func(text string) { r.Notef("%s", text) })
	return err
}

// HasServer reports whether a local cache server is used.
func (r *Reader) HasServer() bool { return r.localServer != nil }

// Notef writes a note to stderr if --verbose is set.
func (r *Reader) Notef(format string, args ...any) {
	if r.verbose {
		fmt.Fprintf(r.ErrOut, "note: %s\n", print.OneSafeLine(fmt.Sprintf(format, args...)))
	}
}

// SelectorFlags are kubectl's selector flags.
type SelectorFlags struct{ label, field string }

func (f *SelectorFlags) Add(set *pflag.FlagSet) {
	set.StringVarP(&f.label, "selector", "l", "",
		"Label selector, as in 'app=web,tier!=cache'. Also as in 'env in (prod,stage)'. The server evaluates it.")
	set.StringVar(&f.field, "field-selector", "",
		"Field selector, as in 'metadata.name=web'. The server evaluates it and supports few fields.")
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
