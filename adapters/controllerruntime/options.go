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
	// Indexes is a config. client.MatchingFields finds objects by the index names of the resources that match
	// a type. Their storage mode and prune or keep rules apply too, unless Storage, Prune or Keep is set. New
	// rejects namespaces and selectors, which belong into cache.Options.
	Indexes *indexers.Config

	// Storage is the storage mode. Default: dynamicinformer.StorageAdaptive with CompressLists, or that of
	// Factory. If only metadata of a type is read, only metadata is stored.
	Storage dynamicinformer.Storage

	// Prune has the parts to remove from objects, before transforms run. Default: none.
	Prune dynamicinformer.Prune

	// Keep has the fields of objects to store, and a condition on objects to store whole, in place of Prune.
	// Readers and handlers get all others as reduced objects: see ReducedAnnotation. Default: all fields.
	Keep dynamicinformer.Keep

	// ReducedGet selects the result of Get for a reduced object. Default: GetLive.
	ReducedGet ReducedGet

	// Types is a live source of the types of the server, which the caller runs. It cannot be combined with
	// Factory. Default: the RESTMapper, and a discovery.Tracker that Start runs.
	Types typesource.Source

	// Factory provides the informers, so that a program can share them. Start starts it, and releases the
	// informers of the cache at its end. Its options apply where cache.Options and these Options are not set,
	// and its client decides about transport and rate limits. If two caches share an informer, the first
	// one's sync period, bookmarks and watch error handler apply.
	//
	// The caller shuts the factory down after the cache has ended. If it does so earlier, Start returns an
	// error, and reads fail. Default: a factory that the cache shuts down.
	Factory *dynamicinformer.Factory

	// Group makes the factory of the cache a member of a group, for managers of many clusters, until Start
	// returns. Its name in the group is Name. To get metrics, register metrics.NewGroupCollector. It cannot
	// be combined with Factory and MemoryBudget. Default: none.
	Group *dynamicinformer.Group

	// MemoryBudget is dynamicinformer.Options.MemoryBudget. It cannot be combined with Factory.
	MemoryBudget int64

	// Persistence is dynamicinformer.Options.Persistence. Close the store after Start has returned. It cannot
	// be combined with Factory.
	Persistence persistence.Backend

	// RejectMissingTypes makes reads and GetInformer return a *meta.NoKindMatchError immediately for a type
	// that the server is known not to have (TestMissingTypesAreRejected). Default: reads wait for a type that
	// was never there, and find no object of a type that was removed.
	RejectMissingTypes bool

	// Sharding restricts the cache to the objects of the shards that this replica owns. Default: all objects.
	Sharding *Sharding

	// Metrics is the registry for the metrics of the informers while Start runs: see package metrics.
	// Default: the registry of controller-runtime, or none if Factory is set.
	Metrics prometheus.Registerer

	// Name is the label "factory" in the metrics. If it is taken, a number is added, as in "name (2)".
	// Default: the host of the cluster's rest.Config, or none with Factory.
	Name string
}

// defaultCompression is shared by all caches, so that caches of one factory can share informers.
var defaultCompression = s2.New()

// compression returns the compression for types without a setting of their own.
func (o Options) compression() dynamicinformer.Compression {
	if o.Storage.Compression != nil {
		return o.Storage.Compression
	}
	return defaultCompression
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
	errs := []error{o.ReducedGet.validate(), checkStorage(o.Storage),
		dynamicinformer.ResourceOptions{Prune: o.Prune, Keep: o.Keep}.Validate()}
	refuse := func(invalid bool, format string, args ...any) {
		if invalid {
			errs = append(errs, fmt.Errorf("Options."+format, args...))
		}
	}
	refuse(o.Factory != nil && o.Types != nil, "Types: give them to the factory that Factory is, not beside it")
	refuse(o.Factory != nil && (o.MemoryBudget != 0 || o.Persistence != nil),
		"MemoryBudget, Persistence: set them in the options of Factory")
	refuse(o.Group != nil && (o.Factory != nil || o.MemoryBudget != 0),
		"Group: it excludes Factory, and has the MemoryBudget of all clusters")
	if o.Indexes == nil {
		return errors.Join(errs...)
	}
	for _, r := range o.Indexes.Resources {
		refuse(!r.Namespaces.All() || r.LabelSelector() != nil || r.FieldSelector() != nil,
			"Indexes: resource %q has namespaces or selectors; write them into cache.Options", r.Name)
		var mode dynamicinformer.StorageMode
		err := mode.UnmarshalText([]byte(r.Storage.Mode))
		if err == nil {
			err = checkStorage(dynamicinformer.Storage{Mode: mode})
		}
		refuse(err != nil, "Indexes: resource %q has storage mode %s: %w", r.Name, r.Storage.Mode, err)
	}
	return errors.Join(errs...)
}
