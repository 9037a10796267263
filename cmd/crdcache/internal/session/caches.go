package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

type Caches struct {
	// All are the types in the requested order.
	All []Cache
	// Synced are the types with synced informers. Sync sets it.
	Synced []Cache

	factories map[dynamic.Interface]*dynamicinformer.Factory
}

type Cache struct {
	Resource discovery.Resource
	Informer *dynamicinformer.Informer
}

type CacheOptions struct {
	// Namespace limits namespaced types. Empty means all namespaces.
	Namespace string
	// Defaults apply to every type.
	Defaults dynamicinformer.ResourceOptions
	// Resources apply to single types.
	Resources map[schema.GroupVersionResource]dynamicinformer.ResourceOptions
	// Types is the source of types for commands that follow them. Default: the requested types.
	Types typesource.Source
	// Listener is called for changes of status.
	Listener status.Listener
}

// OneClient returns a function that returns client for every type.
func OneClient(client dynamic.Interface) func(schema.GroupVersionResource) dynamic.Interface {
	return func(schema.GroupVersionResource) dynamic.Interface { return client }
}

// NewCaches creates an informer for each type, with the client of clientFor. Sync starts the informers.
func NewCaches(clientFor func(schema.GroupVersionResource) dynamic.Interface, resources []discovery.Resource,
	options CacheOptions) (*Caches, error) {
	perType := make(map[schema.GroupVersionResource]dynamicinformer.ResourceOptions, len(resources))
	for _, r := range resources {
		typeOptions := options.Resources[r.GVR]
		if options.Namespace != "" && r.Scope == discovery.Namespaced {
			typeOptions.Namespaces = dynamicinformer.InNamespaces(options.Namespace)
		}
		perType[r.GVR] = typeOptions
	}
	c := &Caches{factories: map[dynamic.Interface]*dynamicinformer.Factory{}}
	for _, r := range resources {
		client := clientFor(r.GVR)
		if c.factories[client] == nil {
			factory, err := dynamicinformer.New(dynamicinformer.Options{
				Client: client, Types: options.Types, Defaults: options.Defaults, Resources: perType,
				Listener: options.Listener,
			})
			if err != nil {
				c.Close()
				return nil, err
			}
			c.factories[client] = factory
		}
		informer, err := c.factories[client].ForResource(r.GVR)
		if err != nil {
			c.Close()
			return nil, err
		}
		c.All = append(c.All, Cache{r, informer})
	}
	return c, nil
}

// Sync starts the informers and waits until they have synced, with a progress line on the target's stderr.
// The informers run until Close.
func (c *Caches) Sync(ctx context.Context, t *Target) error {
	defer t.Progress(c.countSynced)()
	for _, factory := range c.factories {
		if err := factory.Start(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	informers := make([]*dynamicinformer.Informer, len(c.All))
	for i, cached := range c.All {
		informers[i] = cached.Informer
	}
	err := WaitForSync(ctx, informers...)
	for _, cached := range c.All {
		if cached.Informer.HasSynced() {
			c.Synced = append(c.Synced, cached)
		}
	}
	return c.dropListedTypes(err)
}

// WaitForSync waits until every informer is settled or ctx ends. A request that fails with status 400 also
// ends the wait, because the cause is the user's selector. If types are not synced, WaitForSync returns one
// *dynamicinformer.NotSyncedError.
func WaitForSync(ctx context.Context, informers ...*dynamicinformer.Informer) error {
	failure := &dynamicinformer.NotSyncedError{}
	for _, informer := range informers {
		current, changed := informer.StatusChange()
		for failure.Cause == nil && !current.Settled() && !apierrors.IsBadRequest(current.LastError) {
			select {
			case <-changed:
				current, changed = informer.StatusChange()
			case <-ctx.Done():
				failure.Cause = context.Cause(ctx)
			}
		}
		if current.State != status.Synced {
			failure.NotSynced = append(failure.NotSynced, current)
		}
	}
	if len(failure.NotSynced) == 0 {
		return nil
	}
	return failure
}

// dropListedTypes removes types from a *dynamicinformer.NotSyncedError that were listed but cannot be
// watched, such as componentstatuses. An informer of such a type can have synced before its watch was
// refused.
func (c *Caches) dropListedTypes(err error) error {
	var unsynced *dynamicinformer.NotSyncedError
	if !errors.As(err, &unsynced) {
		return err
	}
	unsynced.NotSynced = slices.DeleteFunc(unsynced.NotSynced, func(current status.Status) bool {
		return current.State == status.Degraded && slices.ContainsFunc(c.Synced, func(cached Cache) bool {
			return cached.Resource.GVR == current.GVR
		})
	})
	if len(unsynced.NotSynced) == 0 {
		return nil
	}
	return err
}

func (c *Caches) countSynced() (synced, total int) {
	for _, cached := range c.All {
		if cached.Informer.HasSynced() {
			synced++
		}
	}
	return synced, len(c.All)
}

// Close stops the informers. It does not wait for handlers.
func (c *Caches) Close() {
	for _, factory := range c.factories {
		_ = factory.Close() // never fails
	}
}

// Selectors returns list options with the label and field selector.
func Selectors(cached dynamicinformer.ResourceOptions) metav1.ListOptions {
	var listOptions metav1.ListOptions
	if cached.LabelSelector != nil {
		listOptions.LabelSelector = cached.LabelSelector.String()
	}
	if cached.FieldSelector != nil {
		listOptions.FieldSelector = cached.FieldSelector.String()
	}
	return listOptions
}

// Section returns the cached objects with keys greater than afterKey, in the given order. A nil order means
// the API server's order.
func (c Cache) Section(rows print.RowFormatter, order *print.Order, afterKey string) print.Section {
	snapshot := c.Informer.Snapshot()
	return print.Section{Resource: c.Resource, Empty: snapshot.Len() == 0, Rows: rows,
		Each: func(w *print.Writer) (err error) {
			keys := slices.DeleteFunc(snapshot.Keys(), func(key string) bool { return key <= afterKey })
			print.SortKeys(keys)
			decode := func(key string) (*unstructured.Unstructured, error) {
				item, _ := snapshot.Stored(key) // the snapshot is immutable
				object, err := DecodeStored(item)
				if err != nil {
					return nil, c.wrapErr(key, err)
				}
				return object, w.Err()
			}
			switch {
			case order != nil:
				keys, err = print.Sorted(order, keys, decode)
			case print.HasServerRows(rows):
				keys, err = print.InServerOrder(keys, decode)
			}
			if err != nil {
				return err
			}
			if w.KeysOnly() {
				return w.PrintKeys(keys)
			}
			for _, key := range keys {
				item, _ := snapshot.Stored(key) // the snapshot is immutable
				if err := c.print(w, key, item); err != nil {
					return err
				}
			}
			return nil
		}}
}

func (c Cache) wrapErr(key string, err error) error {
	return fmt.Errorf("%s %s: %w", c.Resource.GVR.Resource, key, err)
}

func (c Cache) print(w *print.Writer, key string, item any) error {
	if err := w.Err(); err != nil {
		return err
	}
	var err error
	if object, ok := item.(dynamicinformer.PackedObject); ok {
		err = object.ReadJSON(func(json []byte) error { return w.Print(print.Object{Key: key, JSON: json}) })
	} else {
		var object *unstructured.Unstructured
		if object, err = DecodeStored(item); err == nil {
			err = w.Print(print.Object{Key: key, Decoded: object})
		}
	}
	if err != nil {
		return c.wrapErr(key, err)
	}
	return nil
}

// DecodeStored returns an object of a snapshot. It decodes packed objects.
func DecodeStored(item any) (*unstructured.Unstructured, error) {
	switch object := item.(type) {
	case *unstructured.Unstructured:
		return object, nil
	case dynamicinformer.PackedObject:
		return object.Decode()
	}
	return nil, fmt.Errorf("unexpected object of type %T in the cache", item)
}

// ResultSection returns the objects of a query result in the order of the result.
func (t *Types) ResultSection(result *query.Result) print.Section {
	resource := t.Resources[0]
	each := func(w *print.Writer) error {
		if w.KeysOnly() {
			return w.PrintKeys(result.Keys())
		}
		return result.AllJSON(func(key string, json []byte) error {
			return w.Print(print.Object{Key: key, JSON: json})
		})
	}
	return print.Section{Resource: resource, Rows: t.Rows(resource.GVR), Empty: result.Len() == 0, Each: each}
}

// IndexStats computes the statistics of the indexes over the cached objects. It reads each object once. The
// informer's own statistics count an object again after each change.
func (c Cache) IndexStats(ctx context.Context, indexes []*indexers.Index) ([]indexers.Stats, error) {
	indexFuncs := indexers.CompileIndexes(indexes...)
	snapshot := c.Informer.Snapshot()
	keys := snapshot.Keys()
	slices.Sort(keys)
	var values [][]string
	for _, key := range keys {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		item, _ := snapshot.Stored(key) // the snapshot is immutable
		object, ok := item.(dynamicinformer.PackedObject)
		if !ok {
			indexFuncs.Keys(item)
			continue
		}
		err := object.ReadJSON(func(json []byte) error {
			for i := range values {
				values[i] = values[i][:0]
			}
			values = indexFuncs.KeysJSON(json, values)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return indexFuncs.Stats(), nil
}
