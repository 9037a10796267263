package session

import (
	"context"
	"errors"
	"iter"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
)

// Reader is the result of parsing the flags and arguments of a reading verb.
type Reader struct {
	// Target is the source of the objects.
	*Target
	// Config has the indexes and references.
	Config *Config
	// PrintsTables is set for commands that print objects as tables.
	PrintsTables bool

	flags  *ReadFlags
	types  []string // type names for discovery
	cached dynamicinformer.ResourceOptions

	// localServer is the local cache server that Target uses, or nil.
	localServer *localserver.Client
	verbose     bool
}

// TypeNames returns the requested type names in discovery's form.
func (r *Reader) TypeNames() []string { return r.types }

// UseTypesOfConfig sets the types to the resources of the config.
func (r *Reader) UseTypesOfConfig() (err error) {
	if r.types, err = r.Config.TypeNames(r.Config.Names()); err == nil && len(r.types) == 0 {
		err = Usagef("the config declares no types: name the types to cache")
	}
	return err
}

// Cached returns the informer options from the flags, without namespaces.
func (r *Reader) Cached() dynamicinformer.ResourceOptions { return r.cached }

// Types are resolved types with clients to read them.
type Types struct {
	Resources []discovery.Resource
	Client    dynamic.Interface

	reader     *Reader
	httpClient *http.Client
	// rows are the formatters of the types with a CRD, and tables lists the others with the API server's
	// rows. Both are nil without LoadRows.
	rows   map[schema.GroupVersionResource]print.RowFormatter
	tables *print.TableClient
}

// LoadRows prepares the types for tables, before their objects are read.
func (t *Types) LoadRows(ctx context.Context) (err error) {
	if t.tables != nil {
		return nil
	}
	t.tables, err = print.NewTableClient(t.reader.Rest, t.httpClient, t.Client)
	t.rows = map[schema.GroupVersionResource]print.RowFormatter{}
	loaded := print.LoadRows(ctx, t.reader.Definitions(t.Client), t.Resources, t.reader.ErrOut)
	for i, r := range t.Resources {
		if loaded[i] != nil {
			t.rows[r.GVR] = loaded[i]
		}
	}
	return err
}

// Rows returns the row formatter of a type whose objects were read, or nil without LoadRows. It warns if the
// user may not read the CRD and the server has printed no rows.
func (t *Types) Rows(gvr schema.GroupVersionResource) print.RowFormatter {
	if rows := t.rows[gvr]; rows != nil || t.tables == nil {
		return rows
	}
	rows := t.tables.Rows(gvr)
	found, _ := t.reader.fetchedCRDs.Load(gvr.GroupResource())
	if of, _ := found.(definition); apierrors.IsForbidden(of.err) && !print.HasServerRows(rows) {
		print.WarnOfMissingColumns(t.reader.ErrOut, discovery.Resource{GVR: gvr}, of.err)
	}
	return rows
}

// HasColumns reports whether the columns of a type are known without the API server's rows.
func (t *Types) HasColumns(gvr schema.GroupVersionResource) bool { return t.rows[gvr] != nil }

// clientOf returns the client to read a type, which adds the API server's rows to its objects if necessary.
func (t *Types) clientOf(gvr schema.GroupVersionResource) dynamic.Interface {
	if t.tables == nil || t.rows[gvr] != nil {
		return t.Client
	}
	return t.tables
}

// Find resolves the types. It returns the resolved types together with the joined errors of the others, and
// nil if there are none.
func (r *Reader) Find(ctx context.Context) (*Types, error) {
	resources, unresolved := r.Resolve(ctx, r.types)
	if len(resources) == 0 {
		return nil, unresolved
	}
	types, err := r.typesOf(resources)
	return types, errors.Join(unresolved, err)
}

func (r *Reader) typesOf(resources []discovery.Resource) (*Types, error) {
	httpClient, err := r.HTTPClient()
	if err != nil {
		return nil, err
	}
	client, err := dynamicinformer.NewClient(r.Rest, httpClient)
	if err != nil {
		return nil, err
	}
	return &Types{Resources: resources, Client: client, reader: r, httpClient: httpClient}, nil
}

// Indexes returns the config's indexes of each type that has any.
func (t *Types) Indexes() Indexes {
	found := Indexes{}
	for _, resource := range t.Resources {
		if indexes := t.reader.Config.Indexes(resource); len(indexes) > 0 {
			found[resource.GVR] = indexes
		}
	}
	return found
}

// Caches creates an informer with indexes for each type. It overwrites the options that the flags determine.
func (t *Types) Caches(indexes Indexes, options CacheOptions) (*Caches, error) {
	options.Namespace, options.Defaults = t.reader.Namespace, t.reader.cached
	options.Resources = map[schema.GroupVersionResource]dynamicinformer.ResourceOptions{}
	for gvr, compiled := range indexes {
		options.Resources[gvr] = dynamicinformer.ResourceOptions{Indexes: indexers.
			CompileIndexes(compiled...)}
	}
	return NewCaches(t.clientOf, t.Resources, options)
}

// SectionOptions returns the options to print objects of the types.
func (t *Types) SectionOptions() print.SectionOptions {
	return print.SectionOptions{Cluster: t.reader.Cluster, Namespace: t.reader.Namespace}
}

// Indexes maps types to their indexes.
type Indexes map[schema.GroupVersionResource][]*indexers.Index

// SyncCallbacks are the callbacks of Sync.
type SyncCallbacks struct {
	// BeforeSync, if set, validates the command after the types are resolved and before objects are read.
	BeforeSync func(types *Types, indexes Indexes) error
	// WithoutSync, if set, can complete the command without a sync. It returns done if it did.
	WithoutSync func(ctx context.Context, types *Types, unresolved error) (done bool, err error)
	// AfterSync processes the synced caches, possibly none.
	AfterSync func(ctx context.Context, types *Types, indexes Indexes, synced []Cache) error
}

// Sync resolves the types, syncs their caches with a progress line, and calls the steps. The returned error
// joins the errors of the steps and of the types that failed. Failed types do not prevent AfterSync.
func (r *Reader) Sync(ctx context.Context, steps SyncCallbacks) error {
	syncCtx, cancel := r.Limit(ctx)
	defer cancel()
	types, unresolved := r.Find(syncCtx)
	if types == nil {
		return unresolved
	}
	indexes := types.Indexes()
	if steps.BeforeSync != nil {
		if err := steps.BeforeSync(types, indexes); err != nil {
			return errors.Join(unresolved, err)
		}
	}
	if steps.WithoutSync != nil {
		if done, err := steps.WithoutSync(syncCtx, types, unresolved); done {
			return err
		}
	}
	if r.PrintsTables {
		if err := types.LoadRows(syncCtx); err != nil {
			return err
		}
	}
	err := types.Sync(ctx, syncCtx, indexes,
		func(synced []Cache) error { return steps.AfterSync(ctx, types, indexes, synced) })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(unresolved, err)
}

// Sync syncs the types until syncCtx ends, then calls use with the synced caches.
func (t *Types) Sync(ctx, syncCtx context.Context, indexes Indexes, use func(synced []Cache) error) error {
	cached, err := t.Caches(indexes, CacheOptions{})
	if err != nil {
		return err
	}
	defer cached.Close()
	unsynced := cached.Sync(syncCtx, t.reader.Target)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(unsynced, use(cached.Synced))
}

// chunkSize is the number of objects per page, as in kubectl.
const chunkSize = 500

type page struct {
	objects []unstructured.Unstructured
	next    string // continue token; empty after the last page
	err     error
}

// Pages lists the first type in pages at one resource version, in the server's order. It prefetches one page,
// so a slow reader slows down the server. The deadline of firstPageCtx applies to the first page, --timeout
// to each other page. Iteration ends after an error. If ctx ends before the last page, its cause is the last
// error, so a partial list never looks complete.
func (t *Types) Pages(ctx, firstPageCtx context.Context) iter.Seq2[[]unstructured.Unstructured, error] {
	from := t.reader.inNamespace(t.clientOf(t.Resources[0].GVR), t.Resources[0])
	return func(yield func([]unstructured.Unstructured, error) bool) {
		reading, cancel := context.WithCancel(ctx)
		defer cancel()
		pages := make(chan page)
		go func() { // ended by the last page, an error or cancel
			defer close(pages)
			limited, done := firstPageCtx, context.CancelFunc(func() {})
			for next := ""; ; {
				read := t.reader.getPage(limited, from, next)
				done()
				select {
				case pages <- read:
				case <-reading.Done():
					return
				}
				if next = read.next; read.err != nil || next == "" {
					return
				}
				limited, done = t.reader.Limit(reading)
			}
		}()
		for read := range pages {
			if !yield(read.objects, read.err) || read.err != nil || read.next == "" {
				return
			}
		}
		yield(nil, context.Cause(ctx)) // ctx ended and the goroutine returned without a page
	}
}

func (r *Reader) getPage(ctx context.Context, from dynamic.ResourceInterface, next string) page {
	options := Selectors(r.cached)
	options.Limit, options.Continue = chunkSize, next
	list, err := from.List(ctx, options)
	if err != nil {
		return page{err: err}
	}
	for i := range list.Items {
		if err := r.transform(&list.Items[i]); err != nil {
			return page{err: err}
		}
	}
	return page{objects: list.Items, next: list.GetContinue()}
}

// inNamespace returns the client for a type in the requested namespace.
func (r *Reader) inNamespace(client dynamic.Interface,
	resource discovery.Resource) dynamic.ResourceInterface {
	return client.Resource(resource.GVR).Namespace(r.NamespaceFor(resource))
}
