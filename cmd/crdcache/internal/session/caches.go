package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// Caches are the informers of one command.
type Caches struct {
	// All are the types in the order in which they were asked for.
	All []Cache
	// Synced are the types whose informers are synced, after Sync.
	Synced []Cache

	factory  *dynamicinformer.Factory
	refusals Refusals
}

// Cache is a type and its informer.
type Cache struct {
	Resource discovery.Resource
	Informer *dynamicinformer.Informer
}

// CacheOptions say what is cached.
type CacheOptions struct {
	// Namespace limits namespaced types; empty means all.
	Namespace string
	// Defaults are for every type.
	Defaults dynamicinformer.ResourceOptions
	// Resources are for single types.
	Resources map[schema.GroupVersionResource]dynamicinformer.ResourceOptions
	// Types tells which types there are, for commands that follow them. Default: all that are asked for.
	Types typesource.Source
	// Listener is told how the types are doing.
	Listener dynamicinformer.Listener
}

// NewCaches makes an informer for each type, which Sync will run.
func NewCaches(client dynamic.Interface, resources []discovery.Resource,
	options CacheOptions) (*Caches, error) {
	perType := make(map[schema.GroupVersionResource]dynamicinformer.ResourceOptions, len(resources))
	for _, r := range resources {
		one := options.Resources[r.GVR]
		if options.Namespace != "" && r.Scope == discovery.Namespaced {
			one.Namespaces = dynamicinformer.InNamespaces(options.Namespace)
		}
		perType[r.GVR] = one
	}
	c := &Caches{}
	factory, err := dynamicinformer.New(dynamicinformer.Options{
		Client: client, Types: options.Types, Defaults: options.Defaults, Resources: perType,
		Listener: c.refusals.Heed(options.Listener),
	})
	if err != nil {
		return nil, err
	}
	c.factory = factory
	for _, r := range resources {
		informer, err := factory.ForResource(r.GVR)
		if err != nil {
			c.Shutdown()
			return nil, err
		}
		c.All = append(c.All, Cache{Resource: r, Informer: informer})
	}
	return c, nil
}

// Sync runs the informers and waits until all are settled, the server calls the requests of the others wrong,
// or ctx ends. Its error joins those of the types whose objects have not all been read. The informers run
// until Shutdown.
func (c *Caches) Sync(ctx context.Context) error {
	if err := c.factory.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	gvrs := make([]schema.GroupVersionResource, len(c.All))
	for i, cached := range c.All {
		gvrs[i] = cached.Resource.GVR
	}
	err := c.refusals.WaitForSync(ctx, c.factory, gvrs...)
	for _, cached := range c.All {
		if cached.Informer.HasSynced() {
			c.Synced = append(c.Synced, cached)
		}
	}
	return c.withoutRead(err)
}

// withoutRead drops the types from a *dynamicinformer.NotSyncedError whose objects have all been read and
// whose watch the server then refused, as it does that of componentstatuses. Whether such a type still is
// synced when it is looked at depends on how soon the refusal comes.
func (c *Caches) withoutRead(err error) error {
	var unsynced *dynamicinformer.NotSyncedError
	if !errors.As(err, &unsynced) {
		return err
	}
	unsynced.Missing = slices.DeleteFunc(unsynced.Missing, func(current status.Status) bool {
		return current.State == status.Degraded && slices.ContainsFunc(c.Synced, func(cached Cache) bool {
			return cached.Resource.GVR == current.GVR
		})
	})
	if len(unsynced.Missing) == 0 {
		return nil
	}
	return err
}

// Progress counts the types that are synced.
func (c *Caches) Progress() (done, all int) {
	for _, cached := range c.All {
		if cached.Informer.HasSynced() {
			done++
		}
	}
	return done, len(c.All)
}

// Shutdown stops the informers. Nothing but list and watch requests can be under way, which end at once.
func (c *Caches) Shutdown() { _ = c.factory.Shutdown(context.Background()) }

// Selectors are those of the objects that are cached, as the server takes them.
func Selectors(cached dynamicinformer.ResourceOptions) metav1.ListOptions {
	var options metav1.ListOptions
	if cached.LabelSelector != nil {
		options.LabelSelector = cached.LabelSelector.String()
	}
	if cached.FieldSelector != nil {
		options.FieldSelector = cached.FieldSelector.String()
	}
	return options
}

// Section is the objects that are cached at this moment, in an order, or in that of the API server if it is
// nil. It has only the objects with keys after one; empty: all.
func (c Cache) Section(order *print.Order, after string) print.Section {
	snapshot := c.Informer.Snapshot()
	return print.Section{Resource: c.Resource, Empty: snapshot.Len() == 0,
		Each: func(w *print.Writer) (err error) {
			keys := slices.DeleteFunc(snapshot.Keys(), func(key string) bool { return key <= after })
			if order == nil {
				w.Sort(keys)
			} else if keys, err = c.sorted(w, snapshot, keys, order); err != nil {
				return err
			}
			if w.KeysOnly() {
				return w.Keys(keys)
			}
			for _, key := range keys {
				item, _ := snapshot.Stored(key) // the snapshot does not change
				if err := c.print(w, key, item); err != nil {
					return err
				}
			}
			return nil
		}}
}

// sorted returns the keys in the order of their objects.
func (c Cache) sorted(w *print.Writer, snapshot *dynamicinformer.Snapshot, keys []string,
	order *print.Order) ([]string, error) {
	print.SortKeys(keys)
	return print.Sorted(order, keys, func(key string) (*unstructured.Unstructured, error) {
		item, _ := snapshot.Stored(key)
		object, err := Decoded(item)
		if err != nil {
			return nil, c.explain(key, err)
		}
		return object, w.Err()
	})
}

func (c Cache) explain(key string, err error) error {
	return fmt.Errorf("%s %s: %w", c.Resource.GVR.Resource, key, err)
}

// print prints an object as the snapshot holds it.
func (c Cache) print(w *print.Writer, key string, item any) error {
	if err := w.Err(); err != nil {
		return err
	}
	var err error
	if object, ok := item.(dynamicinformer.PackedObject); ok {
		err = object.View(func(json []byte) error { return w.Print(print.Object{Key: key, JSON: json}) })
	} else {
		var object *unstructured.Unstructured
		if object, err = Decoded(item); err == nil {
			err = w.Print(print.Object{Key: key, Decoded: object})
		}
	}
	if err != nil {
		return c.explain(key, err)
	}
	return nil
}

// Decoded is the object that a snapshot holds, which has given it as Stored.
func Decoded(item any) (*unstructured.Unstructured, error) {
	switch object := item.(type) {
	case *unstructured.Unstructured:
		return object, nil
	case dynamicinformer.PackedObject:
		return object.Decode()
	}
	return nil, fmt.Errorf("the cache holds a %T", item)
}

// ResultSection is the objects that a query found, in their order.
func ResultSection(of discovery.Resource, result *query.Result) print.Section {
	return print.Section{Resource: of, Empty: result.Len() == 0, Each: func(w *print.Writer) error {
		if w.KeysOnly() {
			return w.Keys(result.Keys())
		}
		return result.AllJSON(func(key string,
			json []byte) error {
			return w.Print(print.Object{Key: key, JSON: json})
		})
	}}
}

// IndexStats says what indexes meet in the objects that are cached at this moment, each looked at once, in
// the order of their keys. What the informer's own functions counted is not that: they see an object each
// time it changes.
func (c Cache) IndexStats(ctx context.Context, indexes []*indexers.Index) ([]indexers.Stats, error) {
	functions := indexers.CompileIndexes(indexes...)
	snapshot := c.Informer.Snapshot()
	keys := snapshot.Keys()
	slices.Sort(keys)
	var values [][]string
	for _, key := range keys {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		item, _ := snapshot.Stored(key) // the snapshot does not change
		object, ok := item.(dynamicinformer.PackedObject)
		if !ok {
			functions.Keys(item)
			continue
		}
		err := object.View(func(json []byte) error {
			for i := range values {
				values[i] = values[i][:0]
			}
			values = functions.KeysJSON(json, values)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return functions.Stats(), nil
}
