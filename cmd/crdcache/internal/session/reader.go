package session

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/local"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
)

// Reader is what flags and arguments amount to.
type Reader struct {
	genericiooptions.IOStreams
	// Target is where objects are read from.
	Target *Target
	// Config has the indexes.
	Config *Config

	types  []string // as discovery takes them
	cached dynamicinformer.ResourceOptions

	// server keeps types, and Target asks it for them; nil where there is none, which noServer explains.
	server   *local.Client
	noServer error
	verbose  bool
}

// TypeNames are the names of types that were given, as discovery takes them.
func (r *Reader) TypeNames() []string { return r.types }

// UseTypesOfConfig makes the types those that the config declares.
func (r *Reader) UseTypesOfConfig() (err error) {
	if r.types, err = r.Config.TypeNames(r.Config.Names()); err == nil && len(r.types) == 0 {
		err = exit.Usagef("the config declares no types: name those to keep")
	}
	return err
}

// Cached says how objects are cached, but for namespaces.
func (r *Reader) Cached() dynamicinformer.ResourceOptions { return r.cached }

// Types are the types that were found, and how to read them.
type Types struct {
	Resources []discovery.Resource
	Client    dynamic.Interface

	reader     *Reader
	httpClient *http.Client
}

// Find finds the types on the server. It gives what it finds together with the joined errors of the rest, and no
// Types when there are none.
func (r *Reader) Find(ctx context.Context) (*Types, error) {
	resources, unresolved := r.Target.Resolve(ctx, r.types)
	if len(resources) == 0 {
		return nil, unresolved
	}
	types, err := r.typesOf(resources)
	return types, errors.Join(unresolved, err)
}

// typesOf makes the clients that read types.
func (r *Reader) typesOf(resources []discovery.Resource) (*Types, error) {
	httpClient, err := r.Target.HTTPClient()
	if err != nil {
		return nil, err
	}
	client, err := dynamicinformer.NewClient(r.Target.Config, httpClient)
	if err != nil {
		return nil, err
	}
	return &Types{Resources: resources, Client: client, reader: r, httpClient: httpClient}, nil
}

// Indexes are those of the config, of each type that has any.
func (t *Types) Indexes() Indexes {
	found := Indexes{}
	for _, resource := range t.Resources {
		if indexes := t.reader.Config.Indexes(resource); len(indexes) > 0 {
			found[resource.GVR] = indexes
		}
	}
	return found
}

// Caches makes an informer for each type, with these indexes. Of the options all but what the flags say is for the
// caller.
func (t *Types) Caches(indexes Indexes, options CacheOptions) (*Caches, error) {
	options.Namespace, options.Defaults = t.reader.Target.Namespace, t.reader.cached
	options.Resources = map[schema.GroupVersionResource]dynamicinformer.ResourceOptions{}
	for gvr, compiled := range indexes {
		options.Resources[gvr] = dynamicinformer.ResourceOptions{Indexes: indexers.CompileIndexes(compiled...)}
	}
	return NewCaches(t.Client, t.Resources, options)
}

// Show says how to print the objects.
func (t *Types) Show(style print.Style) (print.SectionOptions, error) {
	r := t.reader
	loader, err := print.NewRowLoader(r.Target.Config, t.httpClient, r.Target.Definitions(t.Client), r.Target.Namespace, Selectors(r.cached), r.ErrOut)
	return print.SectionOptions{IOStreams: r.IOStreams, Style: style, Namespace: r.Target.Namespace, Loader: loader}, err
}
