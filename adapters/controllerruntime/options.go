package controllerruntime

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/indexers"
)

// Options are the options that cache.Options does not have. The zero value is usable.
type Options struct {
	// Indexes is a config with indexes. client.MatchingFields finds objects by the index names of the
	// resources that match a type. Their storage mode and prune or keep rules apply too, unless Storage,
	// Prune or Keep is set. Namespaces and selectors belong into cache.Options: New rejects a config that
	// has any.
	Indexes *indexers.Config

	// Storage is the storage mode. Default: dynamicinformer.StorageAdaptive with CompressLists, which stores
	// JSON and compresses it while it is not read. With Factory, the default comes from the options of
	// the factory. If only metadata of a type is read, only metadata is stored.
	Storage dynamicinformer.Storage

	// Prune has the parts to remove from objects, before transforms run. cache.TransformStripManagedFields
	// is implemented by Prune. Default: none.
	Prune dynamicinformer.Prune

	// Keep has the fields of objects to store, and a condition on objects to store whole, in place of Prune.
	// Readers see the dropped fields of all other objects as absent. These reduced objects are marked, see
	// ReducedAnnotation. Handlers, predicates and index functions receive reduced objects, too. Default: all
	// fields.
	Keep dynamicinformer.Keep

	// ReducedGet selects the result of Get for an object that Keep has reduced. List returns reduced
	// objects. SetTypeSettings changes it for a type. Default: GetLive.
	ReducedGet ReducedGet

	// Types is a live source of the types that the server has: see dynamicinformer.Options.Types. The
	// caller runs it. Default: a discovery.Tracker that Start runs, together with the types that the
	// RESTMapper found. It cannot be combined with Factory.
	Types typesource.Source

	// Factory provides the informers, so that a program can share them. Start starts it. Its options apply
	// where cache.Options and these Options are not set, and its client decides about transport and rate
	// limits. When the context of Start ends, the cache releases its informers; those that others have
	// acquired run on.
	//
	// The caller shuts the factory down after the cache has ended. If it does so earlier, Start and with it
	// the manager return an error, and reads fail. If two caches share an informer, the first one's sync
	// period, bookmarks and watch error handler apply. Default: a factory that the cache shuts down when
	// the context of Start ends.
	Factory *dynamicinformer.Factory

	// Group makes the factory of the cache a member of a group, for managers of many clusters: the caches
	// share its memory budget, its limit on lists and its dictionaries. The name in the group is Name; if it
	// is taken, a number is added. When the context of Start ends, the cluster leaves the group. To get
	// metrics, register metrics.NewGroupCollector. It cannot be combined with Factory and MemoryBudget.
	// Default: none.
	Group *dynamicinformer.Group

	// MemoryBudget is the number of heap bytes that the informers of the cache should not exceed: see
	// dynamicinformer.Options.MemoryBudget. It cannot be combined with Factory. Default: no budget.
	MemoryBudget int64

	// Persistence stores the cached objects for the next process: see dynamicinformer.Options.Persistence.
	// Close the store after Start has returned. It cannot be combined with Factory. Default: none.
	Persistence persistence.Backend

	// RejectMissingTypes makes reads and GetInformer return a *meta.NoKindMatchError immediately for a type
	// that the server is known not to have (TestMissingTypesAreRejected). Handlers and the informer stay,
	// and work when the type is created. Default: reads wait for a type that was never there, and find no
	// object of a type that was removed.
	RejectMissingTypes bool

	// Sharding restricts the cache to the objects of the shards that this replica owns. Default: all objects.
	Sharding *Sharding

	// Metrics is the registry for the metrics of the informers while Start runs: see package metrics.
	// Default: the registry of controller-runtime, or none if Factory is set. To disable metrics, set a
	// registry that is not scraped.
	Metrics prometheus.Registerer

	// Name is the label "factory" in the metrics, which distinguishes the caches of a registry. If it is
	// taken, a number is added, as in "name (2)". Default: the host of the cluster's rest.Config, or none
	// with Factory.
	Name string
}

// defaultCompression is shared by all caches, so that caches of one factory can share informers.
var defaultCompression = s2.New(s2.Options{})

// compression returns the compression for types without a setting of their own.
func (o Options) compression() dynamicinformer.Compression {
	if o.Storage.Compression != nil {
		return o.Storage.Compression
	}
	return defaultCompression
}

// defaultStorage returns the default storage of a factory that the cache creates.
func (o Options) defaultStorage() dynamicinformer.Storage {
	return dynamicinformer.Storage{Mode: dynamicinformer.StorageAdaptive, Compression: o.compression(),
		CompressLists: true}
}

func (o Options) isSet() bool { return !reflect.ValueOf(o).IsZero() }

// selectsFields reports whether one of the options, which exclude each other, is set.
func selectsFields(p dynamicinformer.Prune, k dynamicinformer.Keep) bool {
	return !reflect.ValueOf(p).IsZero() || !reflect.ValueOf(k).IsZero()
}

var errStorageMetadata = errors.New("Options.Storage: a cache that stores only metadata cannot return complete objects; read metav1.PartialObjectMetadata instead, which also stores only metadata")

var errStorageNone = errors.New("clients of a cache read objects: use another storage mode")

// checkStorage returns an error for a storage mode without complete objects.
func checkStorage(s dynamicinformer.Storage) error {
	switch s.Mode {
	case dynamicinformer.StorageMetadata:
		return errStorageMetadata
	case dynamicinformer.StorageNone:
		return fmt.Errorf("Options.Storage is StorageNone: %w", errStorageNone)
	}
	return nil
}

// validate checks the options without contacting the server.
func (o Options) validate() error {
	errs := []error{o.ReducedGet.validate(),
		dynamicinformer.ResourceOptions{Prune: o.Prune, Keep: o.Keep}.Validate()}
	if o.Factory != nil && o.Types != nil {
		errs = append(errs, errors.New("Options.Types: give them to the factory that Factory is, not beside it"))
	}
	if o.Factory != nil && (o.MemoryBudget != 0 || o.Persistence != nil) {
		errs = append(errs, errors.New("Options.MemoryBudget, Persistence: set them in the options of Factory"))
	}
	if o.Group != nil && (o.Factory != nil || o.MemoryBudget != 0) {
		errs = append(errs, errors.New("Options.Group: it excludes Factory, and has the MemoryBudget of all clusters"))
	}
	if err := checkStorage(o.Storage); err != nil {
		errs = append(errs, err)
	}
	if o.Indexes == nil {
		return errors.Join(errs...)
	}
	for _, r := range o.Indexes.Resources {
		if !r.Namespaces.All() || r.LabelSelector() != nil || r.FieldSelector() != nil {
			errs = append(errs,
				fmt.Errorf("Options.Indexes: resource %q has namespaces or selectors; write them into cache.Options", r.Name))
		}
		var mode dynamicinformer.StorageMode
		if err := mode.UnmarshalText([]byte(r.Storage.Mode)); err != nil {
			errs = append(errs, fmt.Errorf("Options.Indexes: resource %q: %w", r.Name, err))
		}
		switch mode {
		case dynamicinformer.StorageMetadata:
			errs = append(errs,
				fmt.Errorf("Options.Indexes: resource %q has storage mode Metadata; read metav1.PartialObjectMetadata instead, which also stores only metadata", r.Name))
		case dynamicinformer.StorageNone:
			errs = append(errs, fmt.Errorf("Options.Indexes: resource %q has storage mode None: %w", r.Name,
				errStorageNone))
		}
	}
	return errors.Join(errs...)
}
