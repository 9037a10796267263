package session

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/filesource"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/naming"
)

type Caches struct {
	// All are the types in the requested order.
	All []Cache
	// Synced are the types with synced informers. Sync sets it.
	Synced []Cache

	factories map[dynamic.Interface]*dynamicinformer.Factory
	// sharedOptionsOf returns the options of shared caches. If it is nil, no cache is shared.
	sharedOptionsOf func(discovery.Resource) (dynamicinformer.ResourceOptions, error)
}

type Cache struct {
	Resource discovery.Resource
	Informer *dynamicinformer.Informer
	// Shared is set if the cache is that of a Shared.
	Shared bool
	handle *dynamicinformer.Handle
}

// OneClient returns a function that returns client for every type.
func OneClient(client dynamic.Interface) func(schema.GroupVersionResource) dynamic.Interface {
	return func(schema.GroupVersionResource) dynamic.Interface { return client }
}

// NewCaches creates an informer with the options of optionsOf for each type, with the client of clientFor.
// Sync starts the informers, or uses shared ones with the options of sharedOptionsOf.
func NewCaches(clientFor func(schema.GroupVersionResource) dynamic.Interface, resources []discovery.Resource,
	optionsOf, sharedOptionsOf func(discovery.Resource) (dynamicinformer.ResourceOptions, error)) (*Caches,
	error) {
	c := &Caches{sharedOptionsOf: sharedOptionsOf,
		factories: map[dynamic.Interface]*dynamicinformer.Factory{}}
	for _, r := range resources {
		client := clientFor(r.GVR)
		if c.factories[client] == nil {
			factory, err := dynamicinformer.New(dynamicinformer.Options{Client: client, KeepRepeated: true})
			if err != nil {
				c.Close()
				return nil, err
			}
			c.factories[client] = factory
		}
		options, err := optionsOf(r)
		var handle *dynamicinformer.Handle
		if err == nil {
			handle, err = c.factories[client].Acquire(r.GVR, options)
		}
		if err != nil {
			c.Close()
			return nil, err
		}
		c.All = append(c.All, Cache{Resource: r, Informer: handle.Informer(), handle: handle})
	}
	return c, nil
}

// Sync starts the informers and waits until they have synced, with a progress line on the target's stderr.
// The informers run until Close.
func (c *Caches) Sync(ctx context.Context, t *Target) error {
	if sharedOf(ctx) != nil && c.sharedOptionsOf != nil {
		if err := c.share(ctx, t); err != nil {
			return err
		}
	}
	defer t.Progress(c.countSynced)()
	for _, factory := range c.factories {
		if err := factory.Start(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	informers := naming.Map(c.All, func(cached Cache) *dynamicinformer.Informer { return cached.Informer })
	states := t.settle(ctx, informers)
	for i, cached := range c.All {
		// A first list that ends only now is reported as missing, and must not be printed as well.
		isListed := states[i].State != status.Pending && states[i].State != status.Syncing
		if isListed && cached.Informer.HasSynced() {
			c.Synced = append(c.Synced, cached)
			version, contact := "", time.Time{}
			if cached.Shared {
				contact, version = states[i].LastContact, cached.Informer.Snapshot().ResourceVersion()
			}
			ReportOf(ctx).Read(cached.Resource.GVR.GroupResource(), version, contact)
		}
	}
	return notSyncedError(ctx, states)
}

// WaitForSync waits until every informer is settled or ctx ends, and prints the first failure of each. It
// gives up an informer like Retry gives up a request. If types are not synced, WaitForSync returns one
// *dynamicinformer.NotSyncedError.
func (t *Target) WaitForSync(ctx context.Context, informers ...*dynamicinformer.Informer) error {
	return notSyncedError(ctx, t.settle(ctx, informers))
}

// settle returns the states of informers when each is settled or given up, or ctx has ended.
func (t *Target) settle(ctx context.Context, informers []*dynamicinformer.Informer) []status.Status {
	states := make([]status.Status, len(informers))
	var waiting sync.WaitGroup
	for i, informer := range informers {
		waiting.Go(func() { states[i] = t.waitUntilSettled(ctx, informer) }) // ended by ctx
	}
	waiting.Wait()
	return states
}

func notSyncedError(ctx context.Context, states []status.Status) error {
	failure := &dynamicinformer.NotSyncedError{}
	for _, current := range states {
		if current.State != status.Synced {
			failure.NotSynced = append(failure.NotSynced, current)
			if !current.Settled() && ctx.Err() != nil {
				failure.Cause = context.Cause(ctx)
			}
		}
	}
	if len(failure.NotSynced) == 0 {
		return nil
	}
	return failure
}

func (t *Target) waitUntilSettled(ctx context.Context, informer *dynamicinformer.Informer) status.Status {
	current, changed := informer.StatusChange()
	failures := failures{target: t, name: current.GVR.GroupResource().String()}
	for !current.Settled() {
		var gaveUp <-chan time.Time
		if current.LastError != nil {
			remaining := failures.add(current.LastError)
			if remaining <= 0 {
				break
			}
			gaveUp = time.After(remaining)
		}
		select {
		case <-changed:
			current, changed = informer.StatusChange()
		case <-gaveUp:
			return informer.Status()
		case <-ctx.Done():
			return informer.Status()
		}
	}
	return current
}

func (c *Caches) countSynced() (synced, total int) {
	for _, cached := range c.All {
		if cached.Informer.HasSynced() {
			synced++
		}
	}
	return synced, len(c.All)
}

// Close stops the informers that are not shared. It does not wait for handlers.
func (c *Caches) Close() {
	for _, cached := range c.All {
		cached.handle.Release()
	}
	for _, factory := range c.factories {
		_ = factory.Close() // never fails
	}
}

// DecodeStored returns an object of a snapshot or a list. It decodes packed objects.
func DecodeStored(item any) (*unstructured.Unstructured, error) {
	switch object := item.(type) {
	case *unstructured.Unstructured:
		return object, nil
	case dynamicinformer.PackedObject:
		return object.Decode()
	case filesource.Object:
		u := &unstructured.Unstructured{}
		return u, object.ReadJSON(u.UnmarshalJSON)
	}
	return nil, fmt.Errorf("unexpected object of type %T in the cache", item)
}

// ResultKeys returns the keys of a query result. Several objects can have the same key.
func ResultKeys(result *query.Result) []string {
	return naming.Texts(result.Keys(), naming.WithoutNumber)
}

// ResultSection returns the objects of a query result on the page of the report, in the order of the result.
func (t *Types) ResultSection(ctx context.Context, result *query.Result) (print.Section, error) {
	resource := t.Resources[0]
	result = result.Range(ReportOf(ctx).page(result.Len()))
	if t.lacksRows {
		return t.PrintedSection(ctx, ResultKeys(result))
	}
	each := func(w *print.Writer) error {
		if w.KeysOnly() {
			return w.PrintKeys(ResultKeys(result))
		}
		return result.AllJSON(func(key string, json []byte) error {
			return w.Print(print.Object{Key: naming.WithoutNumber(key), JSON: json})
		})
	}
	return print.Section{Resource: resource, Rows: t.Rows(resource.GVR), Empty: result.Len() == 0,
		Each: each}, nil
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
