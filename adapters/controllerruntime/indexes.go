package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/crdcache/crdcache/adapters/controllerruntime/internal/convert"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
)

// indexes has the indexes of a resource. The zero value is empty.
type indexes struct {
	// suffix is appended to the names of index functions, because informers are shared.
	suffix string
	// configured has the indexes and other settings from the config; it never changes.
	configured configuration
	// added has the indexes of IndexField and AddIndexers by name. The map is replaced, not changed.
	added atomic.Pointer[map[string]addedIndex]

	// currentFunctions has the functions added so far, or is nil; guarded by resource.changeMu.
	currentFunctions *indexFunctions
}

// addedIndex is an index of IndexField or AddIndexers.
type addedIndex struct {
	name string // in the informers
	keys toolscache.IndexFunc
	// isField is true for an index of IndexField. Its values in the informers have no namespace.
	isField bool
}

type configuredIndex struct {
	name  string // in the informers
	index *indexers.Index
}

func fieldIndexName(field string) string { return "field:" + field }

func (i *indexes) find(field, value string) (name, key string, err error) {
	if added, ok := i.allAdded()[fieldIndexName(field)]; ok {
		return added.name, value, nil
	}
	configured, ok := i.configured.indexes[field]
	if !ok {
		return "", "", noIndexError(fieldIndexName(field))
	}
	parts := []string{value}
	if configured.index.Composite() {
		parts = indexers.SplitValue(value)
	}
	key, err = configured.index.Key(parts...)
	return configured.name, key, err
}

// allAdded returns the indexes of IndexField and AddIndexers by name. The caller must not change the map.
func (i *indexes) allAdded() map[string]addedIndex { return ptr.Deref(i.added.Load(), nil) }

// indexSuffixes distinguish the functions of forms that share an informer.
var indexSuffixes = map[convert.Form]string{convert.Typed: "", convert.Unstructured: " (unstructured)", convert.Metadata: " (metadata)"}

func (r *resource) addIndexers(added toolscache.Indexers, areFields bool) error {
	r.changeMu.Lock()
	defer r.changeMu.Unlock()
	x := &r.indexes
	all := map[string]addedIndex{}
	maps.Copy(all, x.allAdded())
	functions := &indexFunctions{converter: r.converter}
	var replaced []string
	if x.currentFunctions != nil {
		functions.names, functions.functions, replaced = slices.Clone(x.currentFunctions.names),
			slices.Clone(x.currentFunctions.functions), x.currentFunctions.names
	}
	for _, name := range slices.Sorted(maps.Keys(added)) {
		if _, exists := all[name]; exists || name == toolscache.NamespaceIndex {
			return fmt.Errorf("indexer conflict: %s", name)
		}
		all[name] = addedIndex{name + x.suffix, added[name], areFields}
		functions.names = append(functions.names, all[name].name)
		functions.functions = append(functions.functions, added[name])
	}
	informers := r.allInformers()
	for k, v := range informers {
		if slices.ContainsFunc(informers[:k],
			func(o *scopedInformer) bool { return o.factoryHandle == v.factoryHandle }) {
			continue
		}
		if err := v.factoryHandle.AddIndexes(functions, replaced...); err != nil {
			for _, done := range informers[:k] {
				done.factoryHandle.RemoveIndexes(functions.names[len(replaced):]...)
			}
			return err
		}
	}
	x.currentFunctions = functions
	x.added.Store(&all)
	return nil
}

// indexFunctions are index functions over objects in one form. As a dynamicinformer.IndexSet they share one
// decoding of each object.
type indexFunctions struct {
	converter *convert.Converter
	names     []string
	functions []toolscache.IndexFunc
}

func (f *indexFunctions) Names() []string { return f.names }

func (f *indexFunctions) Ordered(int) bool { return false }

func (f *indexFunctions) Indexers() toolscache.Indexers {
	indexers := toolscache.Indexers{}
	for k, name := range f.names {
		indexers[name] = func(stored any) ([]string, error) {
			object, err := f.converter.SharedObject(stored)
			if err != nil {
				return nil, err
			}
			return f.functions[k](object)
		}
	}
	return indexers
}

// KeysJSON implements dynamicinformer.IndexSet. It reports an object that does not fit the form, and
// returns no keys for it.
func (f *indexFunctions) KeysJSON(json []byte, keys [][]string) [][]string {
	for len(keys) < len(f.names) {
		keys = append(keys, nil)
	}
	object, err := f.converter.Parse(json)
	if err != nil {
		// No context is available.
		utilruntime.HandleError(fmt.Errorf("indexing: %w", err))
		return keys
	}
	for k, function := range f.functions {
		values, err := function(object)
		if err != nil {
			utilruntime.HandleError(fmt.Errorf("index %s: %w", f.names[k], err))
			continue
		}
		keys[k] = append(keys[k], values...)
	}
	return keys
}

// configuration holds the settings of a config for one type.
type configuration struct {
	storage dynamicinformer.Storage
	prune   dynamicinformer.Prune
	keep    dynamicinformer.Keep
	indexes map[string]configuredIndex // by their names in the config
	// functions has the indexes for informers; nil means none.
	functions *indexers.Functions
}

// configurationOf returns the settings of all resources of a config that match a type. It returns an error if
// they conflict, or if the schema of an expression cannot be read.
func configurationOf(config *indexers.Config, r *resource,
	compression dynamicinformer.Compression) (configuration, error) {
	result := configuration{indexes: map[string]configuredIndex{}}
	if config == nil {
		return result, nil
	}
	declared, err := config.ResourceOf(r.gvr, r.key.gvk.Kind)
	if err != nil {
		return result, fmt.Errorf("%s: %w", r.key.gvk, err)
	}
	declared, problems := declared.WithSchema(func() (*crd.Schema, error) {
		if r.cache.types == nil {
			return nil, errors.New("the shared factory has its own source of types")
		}
		ctx, cancel := context.WithTimeout(r.cache.ctx, 5*time.Second)
		defer cancel()
		return r.cache.types.tracker.Schema(ctx, r.gvr)
	})
	if err := errors.Join(problems...); err != nil {
		return result, fmt.Errorf("%s: %w", r.key.gvk, err)
	}
	options, err := bind.Options{Compression: compression}.ResourceOptions(declared)
	result.storage, result.prune, result.keep = options.Storage, options.Prune, options.Keep
	var renamed []*indexers.Index
	for _, index := range declared.Indexes {
		name := declared.Name + "/" + index.Name
		result.indexes[index.Name] = configuredIndex{name: name, index: index}
		renamed = append(renamed, index.Renamed(name))
	}
	if len(renamed) > 0 {
		result.functions = indexers.CompileIndexes(renamed...)
	}
	return result, err
}
