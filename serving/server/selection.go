package server

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/serving/readapi/live"
)

// secretsType is cached only if the config permits it.
var secretsType = discovery.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "secrets"},
	GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Singular: "secret"}

// selection selects the cached types and their indexes. It is immutable; see typeCache.applyIndexes.
type selection struct {
	// typeNames and indexes are those of the config file and its index configs.
	typeNames    []string
	indexes      *indexers.Config
	cacheSecrets bool
	storage      dynamicinformer.Storage
	buildLimits  indexers.BuildLimits
}

func (s *selection) withIndexes(indexes *indexers.Config) *selection {
	next := *s
	next.indexes = indexes
	return &next
}

// names returns the names and patterns of the selected types.
func (s *selection) names() []string {
	names := slices.Clone(s.typeNames)
	for _, r := range s.indexes.Resources {
		names = append(names, matchTypeName(r.Match))
	}
	return names
}

// selects reports whether a name selects a type. A name without a group selects types of any group.
func selects(raw string, r discovery.Resource) bool {
	name, err := discovery.ParseName(raw)
	return err == nil && slices.ContainsFunc(name.Interpretations, func(i discovery.Interpretation) bool {
		names := []string{r.GVR.Resource, r.Singular, r.GVK.Kind}
		return i.Matches(r.GVR.Group, []string{r.GVR.Version},
			slices.Concat(names, r.ShortNames, r.Categories))
	})
}

// settings returns the settings of the reconciler. The error joins the problems of the files.
func (s *selection) settings() (settings live.Settings, err error) {
	problems := []error{s.indexes.CheckMetricScope()}
	for _, name := range s.typeNames {
		problems = append(problems, s.checkSecrets(name))
	}
	for _, r := range s.indexes.Resources {
		if err := s.checkResource(r); err != nil {
			problems = append(problems, fmt.Errorf("resource %q of an index config: %w", r.Name, err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return settings, err
	}
	settings = live.Settings{
		InformerOptions: s.informerOptions, Exclude: s.excludeErr, BuildLimits: s.buildLimits,
		Metrics: func(r discovery.Resource) []*indexers.Metric {
			return s.indexes.MetricsOf(r.GVR, r.GVK.Kind)
		},
		References: func(r discovery.Resource) []*indexers.Reference {
			return s.indexes.ReferencesOf(r.GVR, r.GVK.Kind)
		},
	}
	settings.Selection, err = discovery.NewSelection(s.names()...)
	return settings, err
}

// checkResource returns the errors of a resource that is valid for the library but cannot be served.
func (s *selection) checkResource(r *indexers.Resource) error {
	problems := []error{validateIndexNames(r), s.checkSecrets(matchTypeName(r.Match))}
	if _, err := discovery.ParseName(matchTypeName(r.Match)); err != nil {
		problems = append(problems, err)
	}
	if mode := dynamicinformer.StorageMode(0); r.Storage.Mode != "" {
		if err := errors.Join(mode.UnmarshalText([]byte(r.Storage.Mode)), validateStorage(mode)); err != nil {
			problems = append(problems, fmt.Errorf("storage.mode: %w", err))
		}
	}
	if n := r.Namespaces; !n.All() &&
		(len(n.Include) != 1 || len(n.Exclude) > 0 || strings.Contains(n.Include[0], "*")) {
		problems = append(problems, errors.New("namespaces: crdcached can serve the objects of one namespace or of all: name one namespace in include"))
	}
	if r.Selectors != (indexers.Selectors{}) {
		problems = append(problems, errors.New("selectors: crdcached serves all objects of a type: remove them"))
	}
	options, err := s.optionsOf(r)
	return errors.Join(append(problems, err, options.Validate())...)
}

var errSecrets = errors.New("secrets are cached only if the config sets secrets: true")

// checkSecrets returns an error if a name selects Secrets although the config does not permit it. Patterns
// leave them out.
func (s *selection) checkSecrets(name string) error {
	if !s.cacheSecrets && !strings.Contains(name, "*") && selects(name, secretsType) {
		return fmt.Errorf("%s: %w", name, errSecrets)
	}
	return nil
}

// informerOptions returns the options of a type and its indexes. All resources that select the type must have
// the same settings, because it has one cache.
func (s *selection) informerOptions(r discovery.Resource) (options dynamicinformer.ResourceOptions,
	indexes []*indexers.Index, err error) {
	indexes = s.indexes.IndexesOf(r.GVR, r.GVK.Kind)
	var first, merged *indexers.Resource
	for _, resource := range s.indexes.Resources {
		switch {
		case !resource.Match.MatchesVersion(r.GVR, r.GVK.Kind):
		case !resource.Namespaces.All() && r.Scope != discovery.Namespaced:
			return options, nil, fmt.Errorf("resource %q of an index config: namespaces: the objects of %s have no namespaces: remove namespaces",
				resource.Name, r)
		case first == nil:
			first, merged = resource, new(*resource)
			merged.Keep = resource.EffectiveKeep()
		case !reflect.DeepEqual(s.comparedSettings(first), s.comparedSettings(resource)):
			return options, nil, fmt.Errorf("the resources %q and %q of the index configs select %s with different storage, prune, keep or namespaces: write the same settings in both",
				first.Name, resource.Name, r)
		case merged.Keep.Paths != nil: // the indexes of all resources must be complete
			merged.Keep.Paths = append(merged.Keep.Paths, resource.EffectiveKeep().Paths...)
		}
	}
	if first == nil {
		return dynamicinformer.ResourceOptions{Storage: s.storage}, indexes, nil
	}
	options, err = s.optionsOf(merged)
	return options, indexes, err
}

// comparedSettings returns the settings that must be equal in all resources that select one type.
func (s *selection) comparedSettings(r *indexers.Resource) []any {
	return []any{cmp.Or(r.Storage.Mode, s.storage.Mode.String()), r.Prune, r.Keep, r.Namespaces}
}

// optionsOf returns the informer options of a resource.
func (s *selection) optionsOf(r *indexers.Resource) (dynamicinformer.ResourceOptions, error) {
	options, err := bind.Options{Compression: compression}.ResourceOptions(r)
	if r.Storage.Mode == "" {
		options.Storage = s.storage
	}
	options.Storage.CompressLists = options.Storage.Compression != nil
	return options, err
}

func matchTypeName(m indexers.Match) string {
	name := cmp.Or(m.Resource, m.Kind)
	if m.Version != "" && m.Group != "" {
		name += "." + m.Version
	}
	if m.Group != "" {
		name += "." + m.Group
	}
	return name
}

func (s *selection) excludeErr(r discovery.Resource) error {
	if r.GVR.GroupResource() == secretsType.GVR.GroupResource() && !s.cacheSecrets {
		return errSecrets
	}
	if !slices.ContainsFunc(s.names(), func(name string) bool { return selects(name, r) }) {
		return fmt.Errorf("no config selects %s: write its plural name in match.resource", r)
	}
	return nil
}

// problemOf returns why a type that the config selects is not cached, or nil.
func (c *typeCache) problemOf(gr schema.GroupResource) error {
	problems := c.reconciler.Problems()
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		if parsed, err := discovery.ParseName(name); err == nil && slices.ContainsFunc(parsed.Interpretations,
			func(i discovery.Interpretation) bool {
				return i.Matches(gr.Group, []string{i.Version}, []string{gr.Resource})
			}) {
			return problems[name]
		}
	}
	return nil
}

// describeIndexes returns the sizes of the indexes of a type. A config that exceeds a limit is rejected, but
// indexes also grow.
func (s *selection) describeIndexes(cached live.CachedType) (text string, withinLimits bool) {
	var sizes []string
	total := int64(0)
	withinLimits = true
	for _, index := range cached.Informer.Stats().Indexes {
		if index.Name == toolscache.NamespaceIndex {
			continue
		}
		name, _, _ := strings.Cut(index.Name, "~") // an index that replaced another one
		sizes = append(sizes, fmt.Sprintf("%s %d bytes", name, index.Bytes))
		total += index.Bytes
		withinLimits = withinLimits && (s.buildLimits.IndexBytes == 0 ||
			index.Bytes <= s.buildLimits.IndexBytes)
	}
	if len(sizes) == 0 {
		return "", true
	}
	text = "; indexes: " + strings.Join(sizes, ", ")
	if withinLimits = withinLimits && (s.buildLimits.TypeBytes == 0 ||
		total <= s.buildLimits.TypeBytes); !withinLimits {
		text += "; above limits.indexBytes or limits.typeIndexBytes of the config"
	}
	return text, withinLimits
}
