package controllerruntime

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/storage/s2"
)

// Options are what cache.Options has no place for. The zero value is usable.
type Options struct {
	// Indexes are indexes by configuration. Those of a resource that matches a type are added to each
	// informer of it, and client.MatchingFields finds objects by their names. The storage mode and the prune
	// of a resource apply too, unless Storage or Prune says otherwise. Namespaces and selectors are for
	// cache.Options to say: a config with any is refused.
	Indexes *indexers.Config

	// Storage says how objects are kept. Default: dynamicinformer.StorageAdaptive with CompressLists, as JSON
	// that is compressed while nobody reads it; with Factory, what that factory's options say; the metadata
	// of objects alone where only metadata is read of a type.
	Storage dynamicinformer.Storage

	// Prune says what to leave out of objects. A transform does not see that.
	// cache.TransformStripManagedFields is done as Prune does it, too. Default: nothing.
	Prune dynamicinformer.Prune

	// Types tells which types the server has, live: see dynamicinformer.Options.Types. The caller runs it.
	// Default: a discovery.Tracker, which runs from Start on, beside what the RESTMapper says. It cannot be
	// given with Factory.
	Types typesource.Source

	// Factory has the informers, so that a program can share them with others. Start starts it, and its
	// options count where cache.Options and these say nothing. When the context of Start ends, the cache
	// gives up its informers; those that others hold, and those that they ask for, run until the caller shuts
	// the factory down. That comes after the end of the cache: if it comes before, Start, and with it the
	// manager, ends with an error, and reads fail. Its client decides about transport and rate limits. Of an
	// informer that two caches share, the sync period, the bookmarks and the watch error handler are those of
	// the first. Default: one of the cache's own, shut down when the context of Start ends.
	Factory *dynamicinformer.Factory

	// Sharding has the cache hold the objects of some shards, as they are handed out, rather than all.
	// Default: none.
	Sharding *Sharding

	// Metrics is where the metrics of the informers are registered from Start to the end of its context: see
	// package metrics. Default: the registry of controller-runtime, unless Factory is set, whose owner
	// decides then. To have none, give a registry that nobody asks.
	Metrics prometheus.Registerer

	// Name tells the caches of one registry apart, in the label factory of metrics. Default: none. Where a
	// name is taken, a number is added.
	Name string
}

// defaultCompression is one for all caches, so that those that share a factory share informers.
var defaultCompression = s2.New(s2.Options{})

// compression returns what compresses, where nothing says more about it.
func (o Options) compression() dynamicinformer.Compression {
	if o.Storage.Compression != nil {
		return o.Storage.Compression
	}
	return defaultCompression
}

// defaultStorage is how a factory of the cache's own keeps objects where nothing else is said.
func (o Options) defaultStorage() dynamicinformer.Storage {
	return dynamicinformer.Storage{Mode: dynamicinformer.StorageAdaptive, Compression: o.compression(),
		CompressLists: true}
}

// isSet reports whether anything is.
func (o Options) isSet() bool {
	return o.Indexes != nil || o.Storage != (dynamicinformer.Storage{}) || o.hasPrune() || o.Types != nil ||
		o.Factory != nil || o.Sharding != nil || o.Metrics != nil || o.Name != ""
}

func (o Options) hasPrune() bool {
	return o.Prune.Presets != nil || o.Prune.Paths != nil || o.Prune.Fields != nil ||
		o.Prune.Annotations != nil
}

// validate returns what is wrong with the options by themselves.
func (o Options) validate() error {
	var errs []error
	if o.Factory != nil && o.Types != nil {
		errs = append(errs, errors.New("Options.Types: give them to the factory that Factory is, not beside it"))
	}
	if o.Storage.Mode == dynamicinformer.StorageMetadata {
		errs = append(errs, errors.New("Options.Storage: objects of which only metadata is kept cannot be read whole; read metav1.PartialObjectMetadata instead, which keeps no more"))
	}
	if o.Indexes == nil {
		return errors.Join(errs...)
	}
	for _, r := range o.Indexes.Resources {
		if !r.Namespaces.All() || r.LabelSelector() != nil || r.FieldSelector() != nil {
			errs = append(errs,
				fmt.Errorf("Options.Indexes: resource %q has namespaces or selectors; write them into cache.Options", r.Name))
		}
		if r.Storage.Mode == dynamicinformer.StorageMetadata.String() {
			errs = append(errs,
				fmt.Errorf("Options.Indexes: resource %q has storage mode metadata; read metav1.PartialObjectMetadata instead, which keeps no more", r.Name))
		}
		if r.Match.Versions != "" {
			errs = append(errs,
				fmt.Errorf("Options.Indexes: resource %q follows versions; a cache reads the version of the kind that it is asked for", r.Name))
		}
	}
	return errors.Join(errs...)
}
