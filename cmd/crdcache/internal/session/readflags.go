package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// ReadFlags select the objects to read, their source and their indexes.
type ReadFlags struct {
	ServerFlags
	ConfigFlags
	labelSelector, fieldSelector string // selectors
	cacheFlag                    string
	verbose                      bool
	hasCacheFlags                bool // the verb has the flags of AddCache
	// OnlyNamed is set by verbs that read no other types than the named ones.
	OnlyNamed bool
	// OnlyIdentities is set by verbs that read nothing but names and labels of objects.
	OnlyIdentities bool
	// PrintsTables is set by verbs that print objects as tables.
	PrintsTables bool
}

// Add adds the flags of all reading verbs, and completion for flags and types. allowsMany is for verbs that
// accept several types.
func (f *ReadFlags) Add(cmd *cobra.Command, allowsMany bool) {
	f.ServerFlags.Add(cmd)
	cmd.Flags().BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "")
	f.ConfigFlags.Add(cmd.Flags())
	cmd.ValidArgsFunction = f.CompleteTypes(allowsMany, f.ResourceNames)
}

// AddSelectors adds kubectl's selectors, which exclude object names.
func (f *ReadFlags) AddSelectors(set *pflag.FlagSet) {
	set.StringVarP(&f.labelSelector, "selector", "l", "", "")
	set.StringVar(&f.fieldSelector, "field-selector", "", "")
}

// AddCache adds the flags that control the use of the local cache server.
func (f *ReadFlags) AddCache(cmd *cobra.Command) {
	f.hasCacheFlags = true
	set := cmd.Flags()
	set.StringVar(&f.cacheFlag, "cache", cacheAuto, "")
	set.BoolVarP(&f.verbose, "verbose", "v", false, "")
	markShared(set, "cache", "verbose")
	CompleteValues(cmd, "cache", []string{cacheAuto, cacheNone})
}

// Reader works like Readers for verbs that read one cluster.
func (f *ReadFlags) Reader(ctx context.Context, args []string,
	informerOptions dynamicinformer.ResourceOptions, streams genericiooptions.IOStreams) (*Reader, error) {
	readers, err := f.Readers(ctx, args, informerOptions, streams)
	if err != nil {
		return nil, err
	}
	return readers[0], readers[0].open(ctx)
}

// Readers validates the flags and type arguments, and reads configs, kubeconfig and files. It returns a
// reader for each target, for EachCluster, and sends no request. The selectors of the flags are added to
// informerOptions.
func (f *ReadFlags) Readers(ctx context.Context, args []string,
	informerOptions dynamicinformer.ResourceOptions, streams genericiooptions.IOStreams) ([]*Reader, error) {
	template := Reader{flags: f, args: args, informerOptions: informerOptions, PrintsTables: f.PrintsTables}
	var err error
	options := &template.informerOptions
	if f.labelSelector != "" {
		if options.LabelSelector, err = labels.Parse(f.labelSelector); err != nil {
			return nil, Usagef("--selector (-l): %v", err)
		}
	}
	if f.fieldSelector != "" {
		if options.FieldSelector, err = fields.ParseSelector(f.fieldSelector); err != nil {
			return nil, Usagef("--field-selector: %v", err)
		}
	}
	if template.Config, err = f.Load(f.Streams(streams).ErrOut); err != nil {
		return nil, err
	}
	if template.typeNames, err = template.Config.TypeNames(args); err != nil {
		return nil, err
	}
	if f.OnlyNamed {
		f.files.Types = template.typeNames
	}
	f.files.KeepIdentity = f.OnlyIdentities && f.fieldSelector == "" && !template.Config.IsSet
	targets, err := f.Targets(ctx, streams)
	if err != nil {
		return nil, err
	}
	readers := make([]*Reader, len(targets))
	for i, t := range targets {
		reader := template
		reader.Target, readers[i] = t, &reader
		t.configDigest = template.Config.Digest()
		t.CommaList = slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, ",") })
		t.SelectVersions(true, template.typeNames...)
	}
	return readers, f.validateCacheFlags()
}

// open connects the reader to the local cache server, if there is one.
func (r *Reader) open(ctx context.Context) error {
	shared := sharedOf(ctx)
	r.SharesAll = shared != nil && shared.namespace == ""
	if err := r.Target.open(ctx); err != nil {
		return err
	}
	return r.flags.connectCache(ctx, r)
}

// The values of the flag --cache that are not paths of sockets.
const (
	cacheAuto = "auto"
	cacheNone = "none"
)

func (f *ReadFlags) validateCacheFlags() error {
	if !f.hasCacheFlags {
		return nil
	}
	for _, name := range []string{"cache", "verbose"} {
		if len(f.fromPaths) > 0 && f.flagSet.Changed(name) {
			return Usagef("--from and --%s cannot be used together: files are read without a server", name)
		}
	}
	if f.cacheFlag != cacheAuto && f.cacheFlag != cacheNone && !strings.Contains(f.cacheFlag, "/") {
		return Usagef("--cache is %q: give %s, %s, or the path of a server's socket, which 'serve status' prints",
			f.cacheFlag, cacheAuto, cacheNone)
	}
	return nil
}

// connectCache redirects the reader's requests to the local cache server, if there is one.
func (f *ReadFlags) connectCache(ctx context.Context, r *Reader) (err error) {
	var info localserver.Info
	switch {
	case !f.hasCacheFlags || r.ReadsFiles() || f.cacheFlag == cacheNone || sharedOf(ctx) != nil:
		return nil
	case f.cacheFlag == cacheAuto:
		if r.localServer, err = localserver.NewClient(ctx, r.Rest); err == nil {
			// avoids waiting repeatedly for a server that does not respond
			info, err = r.localServer.Info(ctx)
		}
		if err != nil {
			r.localServer = nil
			r.Notef("reading from the cluster: %v", err)
			return nil
		}
	default:
		if r.localServer, info, err = localserver.NewClientAt(ctx, r.Rest, f.cacheFlag); err != nil {
			return fmt.Errorf("--cache: %w", err)
		}
	}
	r.responses.filesTime.Store(info.FilesTime)
	r.Rest, err = localserver.NewTransport(r.localServer, r.Rest, func(text string) { r.Notef("%s", text) })
	return err
}

// SharesCaches reports whether verbs share their caches: no flag names another source.
func (f *ReadFlags) SharesCaches() bool { return f.cacheFlag == cacheAuto }

func (r *Reader) HasServer() bool { return r.localServer != nil }

// Notef writes a note to stderr if --verbose is set.
func (r *Reader) Notef(format string, args ...any) {
	if r.flags.verbose {
		fmt.Fprintf(r.ErrOut, "note: %s\n", print.OneSafeLine(fmt.Sprintf(format, args...)))
	}
}

func AtLeastOne(noun, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef("name at least one %s, as in '%s %s'", noun, cmd.CommandPath(), example)
		}
		return nil
	}
}

func ExactlyOne(noun, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usagef("name one %s, as in '%s %s'; got %d arguments", noun, cmd.CommandPath(), example, len(args))
		}
		return nil
	}
}
