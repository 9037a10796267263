package controllerruntime

import (
	"fmt"
	"reflect"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
)

// configuration holds the settings of a config for one type.
type configuration struct {
	storage dynamicinformer.Storage
	prune   dynamicinformer.Prune
	keep    dynamicinformer.Keep
	indexes map[string]configuredIndex // by their names in the config
	// functions has the indexes for informers; nil means none.
	functions *indexers.Functions
}

// configurationOf merges the settings of all resources of a config that match a type. It returns an error
// if they conflict.
func configurationOf(config *indexers.Config, r *resource,
	compression dynamicinformer.Compression) (configuration, error) {
	result := configuration{indexes: map[string]configuredIndex{}}
	if config == nil {
		return result, nil
	}
	var renamed []*indexers.Index
	var storageOwner *indexers.Resource // the resource that set the storage
	for _, declared := range config.Resources {
		if !declared.Match.MatchesVersion(r.gvr, r.key.gvk.Kind) {
			continue
		}
		options, err := bind.Options{Compression: compression}.ResourceOptions(declared)
		if err != nil {
			return result, err
		}
		if storageOwner != nil && (!reflect.DeepEqual(options.Storage, result.storage) ||
			!reflect.DeepEqual(options.Prune, result.prune) ||
			!reflect.DeepEqual(options.Keep, result.keep)) {
			return result, fmt.Errorf("resources %q and %q of the config keep %s in different ways",
				storageOwner.Name, declared.Name, r.key.gvk)
		}
		storageOwner, result.storage = declared, options.Storage
		result.prune, result.keep = options.Prune, options.Keep
		for _, index := range declared.Indexes {
			if _, exists := result.indexes[index.Name]; exists {
				return result, fmt.Errorf("%s has several indexes %q in the config, one in resource %q",
					r.key.gvk, index.Name, declared.Name)
			}
			name := declared.Name + "/" + index.Name
			result.indexes[index.Name] = configuredIndex{name: name, index: index}
			renamed = append(renamed, index.Renamed(name))
		}
	}
	if len(renamed) > 0 {
		result.functions = indexers.CompileIndexes(renamed...)
	}
	return result, nil
}
