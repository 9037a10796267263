package controllerruntime

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// defaultSyncPeriod is the default of controller-runtime.
const defaultSyncPeriod = 10 * time.Hour

// settings are cache.Options with all defaults filled in, by the rules of cache.New.
type settings struct {
	// options are the options, without ByObject.
	options cache.Options
	// byKind has the settings from ByObject and SetTypeSettings.
	byKind   map[schema.GroupVersionKind]*typeSettings
	defaults *typeSettings
}

// typeSettings are TypeSettings with all defaults filled in.
type typeSettings struct {
	TypeSettings
	// namespaces has the settings by namespace; cache.AllNamespaces has the settings of all other namespaces.
	// Empty if one watch reads all of them.
	namespaces map[string]cache.Config
	// allNamespaces has the settings of a watch on all namespaces.
	allNamespaces cache.Config
}

// byNamespace returns the settings by namespace. The key "" has the settings of all namespaces without a key.
func (t *typeSettings) byNamespace(namespaced bool) map[string]cache.Config {
	if namespaced && len(t.namespaces) > 0 {
		return t.namespaces
	}
	return map[string]cache.Config{cache.AllNamespaces: t.allNamespaces}
}

// withDefaults fills in the defaults that type resolution needs, as cache.New does.
func withDefaults(config *rest.Config, options cache.Options) (*rest.Config, cache.Options, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = cmp.Or(config.UserAgent, rest.DefaultKubernetesUserAgent())
	var err error
	if options.HTTPClient == nil {
		if options.HTTPClient, err = rest.HTTPClientFor(config); err != nil {
			return nil, options, fmt.Errorf("could not create HTTP client from config: %w", err)
		}
	}
	options.Scheme = cmp.Or(options.Scheme, scheme.Scheme)
	if options.Mapper == nil {
		if options.Mapper, err = apiutil.NewDynamicRESTMapper(config, options.HTTPClient); err != nil {
			return nil, options, fmt.Errorf("could not create RESTMapper from config: %w", err)
		}
	}
	return config, options, nil
}

// resolveSettings resolves the settings of all types. The most specific setting applies: the namespace in
// ByObject, then ByObject, then the namespace in DefaultNamespaces, then the defaults.
func resolveSettings(options cache.Options) (settings, error) {
	defaults := defaultConfig(options)
	s := settings{
		options: options, byKind: map[schema.GroupVersionKind]*typeSettings{},
		defaults: &typeSettings{allNamespaces: defaults, namespaces: withFallbacks(options.DefaultNamespaces,
			func(string) []cache.Config { return []cache.Config{defaults} })},
	}
	s.options.ByObject = nil
	for object, by := range options.ByObject {
		gvk, t, err := s.resolveObject(object, TypeSettings{ByObject: by})
		if err != nil {
			return settings{}, err
		}
		s.byKind[gvk] = t
	}
	return s, s.defaults.validate()
}

func defaultConfig(options cache.Options) cache.Config {
	return cache.Config{
		LabelSelector: options.DefaultLabelSelector, FieldSelector: options.DefaultFieldSelector,
		Transform: options.DefaultTransform, UnsafeDisableDeepCopy: options.DefaultUnsafeDisableDeepCopy,
		EnableWatchBookmarks: options.DefaultEnableWatchBookmarks, SyncPeriod: options.SyncPeriod,
	}
}

func (t *typeSettings) validate() error {
	for _, config := range append(slices.Collect(maps.Values(t.namespaces)), t.allNamespaces) {
		if p := config.SyncPeriod; p != nil && *p < 0 {
			return fmt.Errorf("the SyncPeriod is %v; it must not be negative", *p)
		}
	}
	return errors.Join(checkStorage(t.Storage), t.ReducedGet.validate(), dynamicinformer.ResourceOptions{
		AnyOf: t.AnyOf, Selectors: t.Selectors, Storage: t.Storage, Prune: t.Prune, Keep: t.Keep,
		Versions: t.Versions}.Validate())
}

func (s settings) resolveObject(object client.Object,
	byObject TypeSettings) (schema.GroupVersionKind, *typeSettings, error) {
	options := s.options
	namespaced, err := apiutil.IsObjectNamespaced(object, options.Scheme, options.Mapper)
	if err != nil {
		return schema.GroupVersionKind{}, nil, fmt.Errorf("failed to determine if %T is namespaced: %w", object, err)
	}
	if !namespaced && byObject.Namespaces != nil {
		return schema.GroupVersionKind{}, nil, fmt.Errorf("type %T is not namespaced, but its ByObject.Namespaces setting is not nil", object)
	}
	gvk, err := apiutil.GVKForObject(object, options.Scheme)
	if err != nil {
		return gvk, nil, fmt.Errorf("failed to get GVK for type %T: %w", object, err)
	}
	defaults := defaultConfig(options)
	objectConfig := cache.Config{
		LabelSelector: byObject.Label, FieldSelector: byObject.Field, Transform: byObject.Transform,
		EnableWatchBookmarks: byObject.EnableWatchBookmarks, SyncPeriod: byObject.SyncPeriod,
		UnsafeDisableDeepCopy: byObject.UnsafeDisableDeepCopy,
	}
	t := &typeSettings{TypeSettings: byObject, allNamespaces: withFallback(objectConfig, defaults)}
	if namespaced {
		namespaces := byObject.Namespaces
		if namespaces == nil {
			namespaces = options.DefaultNamespaces
		}
		t.namespaces = withFallbacks(namespaces, func(namespace string) []cache.Config {
			return []cache.Config{objectConfig, options.DefaultNamespaces[namespace], defaults}
		})
	}
	return gvk, t, t.validate()
}

// withFallbacks merges the settings of each namespace with less specific ones. The settings of all namespaces
// exclude the named namespaces.
func withFallbacks(namespaces map[string]cache.Config,
	defaults func(namespace string) []cache.Config) map[string]cache.Config {
	merged := make(map[string]cache.Config, len(namespaces))
	for namespace, config := range namespaces {
		for _, d := range defaults(namespace) {
			config = withFallback(config, d)
		}
		if namespace == cache.AllNamespaces {
			var selectors []fields.Selector
			for _, other := range slices.Sorted(maps.Keys(namespaces)) {
				if other != metav1.NamespaceAll {
					selectors = append(selectors, fields.OneTermNotEqualSelector("metadata.namespace", other))
				}
			}
			if config.FieldSelector != nil {
				selectors = append(selectors, config.FieldSelector)
			}
			config.FieldSelector = fields.AndSelectors(selectors...)
		}
		merged[namespace] = config
	}
	return merged
}

// withFallback returns config with unset fields taken from defaults.
func withFallback(config, defaults cache.Config) cache.Config {
	config.LabelSelector = cmp.Or(config.LabelSelector, defaults.LabelSelector)
	config.FieldSelector = cmp.Or(config.FieldSelector, defaults.FieldSelector)
	config.UnsafeDisableDeepCopy = cmp.Or(config.UnsafeDisableDeepCopy, defaults.UnsafeDisableDeepCopy)
	config.EnableWatchBookmarks = cmp.Or(config.EnableWatchBookmarks, defaults.EnableWatchBookmarks)
	config.SyncPeriod = cmp.Or(config.SyncPeriod, defaults.SyncPeriod)
	if config.Transform == nil { // functions are not comparable
		config.Transform = defaults.Transform
	}
	return config
}
