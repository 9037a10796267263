package session

import (
	"context"
	"errors"
	"iter"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// Find finds the types on the server. It gives what it finds together with the joined errors of the rest, and
// no Types when there are none.
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

// Caches makes an informer for each type, with these indexes. Of the options all but what the flags say is
// for the caller.
func (t *Types) Caches(indexes Indexes, options CacheOptions) (*Caches, error) {
	options.Namespace, options.Defaults = t.reader.Target.Namespace, t.reader.cached
	options.Resources = map[schema.GroupVersionResource]dynamicinformer.ResourceOptions{}
	for gvr, compiled := range indexes {
		options.Resources[gvr] = dynamicinformer.ResourceOptions{Indexes: indexers.
			CompileIndexes(compiled...)}
	}
	return NewCaches(t.Client, t.Resources, options)
}

// Show says how to print the objects.
func (t *Types) Show(style print.Style) (print.SectionOptions, error) {
	r := t.reader
	loader, err := print.NewRowLoader(r.Target.Config, t.httpClient, r.Target.Definitions(t.Client),
		r.Target.Namespace, Selectors(r.cached), r.ErrOut)
	return print.SectionOptions{IOStreams: r.IOStreams, Style: style, Namespace: r.Target.Namespace,
		Loader: loader}, err
}

// Indexes are those of the types that have any.
type Indexes map[schema.GroupVersionResource][]*indexers.Index

// Steps are what a verb does with types of which it reads all objects once.
type Steps struct {
	// Check, if set, looks at the types that were found before anything of them is read.
	Check func(types *Types, indexes Indexes) error
	// Instead, if set, is told what was found, and may do all that there is to do.
	Instead func(ctx context.Context, types *Types, unresolved error) (done bool, err error)
	// Use works on the caches that are synced, which may be none.
	Use func(ctx context.Context, types *Types, indexes Indexes, synced []Cache) error
}

// Sync finds the types, reads all of their objects while it shows on a terminal how far that is, and takes
// the steps. Its error joins theirs with those of the types that failed, which do not keep the others from
// being used.
func (r *Reader) Sync(ctx context.Context, steps Steps) error {
	waiting, cancel := r.Target.Limit(ctx)
	defer cancel()
	types, unresolved := r.Find(waiting)
	if types == nil {
		return unresolved
	}
	indexes := types.Indexes()
	if steps.Check != nil {
		if err := steps.Check(types, indexes); err != nil {
			return errors.Join(unresolved, err)
		}
	}
	if steps.Instead != nil {
		if done, err := steps.Instead(waiting, types, unresolved); done {
			return err
		}
	}
	err := types.Sync(ctx, waiting, indexes,
		func(synced []Cache) error { return steps.Use(ctx, types, indexes, synced) })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(unresolved, err)
}

// Sync reads all objects of the types, for as long as waiting lasts, and calls use with the caches that are
// synced.
func (t *Types) Sync(ctx, waiting context.Context, indexes Indexes, use func(synced []Cache) error) error {
	cached, err := t.Caches(indexes, CacheOptions{})
	if err != nil {
		return err
	}
	defer cached.Shutdown()
	done := t.reader.Target.Progress(cached.Progress)
	unsynced := cached.Sync(waiting)
	done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(unsynced, use(cached.Synced))
}

// chunkSize is how many objects are asked for at a time, as kubectl does.
const chunkSize = 500

// page is a part of a list.
type page struct {
	objects []unstructured.Unstructured
	next    string // the token of what comes after it; empty after the last
	err     error
}

// Pages lists the objects of the first type in pages, in the order of the server, all as they were at one
// moment. While one page is used the next one is read, and no more, so that a slow reader holds back the
// server. The first page may take as long as waiting lasts, any other one --timeout. After an error there is
// nothing; the requests end with ctx, and with the loop. Where ctx ends them before the last page, its cause
// is the error: what came is never taken for all.
func (t *Types) Pages(ctx, waiting context.Context,
	client dynamic.Interface) iter.Seq2[[]unstructured.Unstructured, error] {
	from := t.reader.inNamespace(client, t.Resources[0])
	return func(yield func([]unstructured.Unstructured, error) bool) {
		reading, cancel := context.WithCancel(ctx)
		defer cancel()
		pages := make(chan page)
		go func() { // ended by the last page, an error or cancel
			defer close(pages)
			limited, done := waiting, context.CancelFunc(func() {})
			for next := ""; ; {
				read := t.reader.page(limited, from, next)
				done()
				select {
				case pages <- read:
				case <-reading.Done():
					return
				}
				if next = read.next; read.err != nil || next == "" {
					return
				}
				limited, done = t.reader.Target.Limit(reading)
			}
		}()
		for read := range pages {
			if !yield(read.objects, read.err) || read.err != nil || read.next == "" {
				return
			}
		}
		yield(nil, context.Cause(ctx)) // ctx has ended, and the goroutine chose to notice that
	}
}

// page lists one page.
func (r *Reader) page(ctx context.Context, from dynamic.ResourceInterface, next string) page {
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

// inNamespace reads a type in the namespace that was asked for, if it has namespaces.
func (r *Reader) inNamespace(client dynamic.Interface, of discovery.Resource) dynamic.ResourceInterface {
	if r.Target.Namespace != "" && of.Scope == discovery.Namespaced {
		return client.Resource(of.GVR).Namespace(r.Target.Namespace)
	}
	return client.Resource(of.GVR)
}

// Printed returns a client whose lists bring objects with their rows as the server prints them.
func (t *Types) Printed() (*print.Printed, error) {
	return print.NewPrinted(t.reader.Target.Config, t.httpClient, t.Client)
}
