package server

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/readapi/live"
)

// secrets is cached only if the config permits it.
var secrets = schema.GroupResource{Resource: "secrets"}

// selection is the set of cached types, with their indexes. It is immutable; see cache.change.
type selection struct {
	// types and indexes are those of the config file and its index configs.
	types   []string
	indexes *indexers.Config
	// objects are the custom resources.
	objects *objectConfig
	secrets bool
	storage dynamicinformer.Storage
}

// names returns the names and patterns of types in the files.
func (s *selection) names() []string {
	names := slices.Clone(s.types)
	for _, r := range s.indexes.Resources {
		names = append(names, typeNameOf(r.Match))
	}
	return names
}

// settings returns the settings of the reconciler. The error lists the problems of the files.
func (s *selection) settings() (settings live.Settings, err error) {
	problems := []error{checkIndexNames(s.indexes), s.indexes.CheckMetricScope()}
	for _, r := range s.indexes.Resources {
		if _, err := discovery.ParseName(typeNameOf(r.Match)); err != nil {
			problems = append(problems, fmt.Errorf("resolve resource %q of an index config: %w", r.Name, err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return settings, err
	}
	settings = live.Settings{
		InformerOptions: s.informerOptions, Exclude: s.excludes,
		Metrics: func(r discovery.Resource) []*indexers.Metric {
			return s.indexes.MetricsOf(r.GVR, r.GVK.Kind)
		},
		References: func(r discovery.Resource) []*indexers.Reference {
			return s.indexes.ReferencesOf(r.GVR, r.GVK.Kind)
		},
	}
	settings.Selection, err = discovery.NewSelection(append(s.names(), s.objects.names()...)...)
	return settings, err
}

// informerOptions returns the options of a type and its indexes. The files take precedence over the custom
// resources.
func (s *selection) informerOptions(r discovery.Resource) (dynamicinformer.ResourceOptions,
	[]*indexers.Index) {
	indexes := s.indexes.IndexesOf(r.GVR, r.GVK.Kind)
	for _, index := range s.objects.indexes[r.GVR] { // a new file can have the name of an index
		if !slices.ContainsFunc(indexes, func(x *indexers.Index) bool { return x.Name == index.Name }) {
			indexes = append(indexes, index)
		}
	}
	if e, found := s.objects.cachedTypes(r); found && !s.selects(r) {
		if options, err := optionsOf(e.resource()); err == nil { // parseObject has checked them
			return options, indexes
		}
	}
	return dynamicinformer.ResourceOptions{Storage: s.storage}, indexes
}

func typeNameOf(m indexers.Match) string {
	name := m.Resource
	if name == "" {
		name = m.Kind
	}
	if m.Version != "" && m.Group != "" {
		name += "." + m.Version
	}
	if m.Group != "" {
		name += "." + m.Group
	}
	return name
}

// excludes returns an error for a selected type that must not be cached.
func (s *selection) excludes(r discovery.Resource) error {
	if r.GVR.GroupResource() == secrets && !s.secrets {
		return errors.New("secrets are cached only if the config sets secrets: true")
	}
	if _, found := s.objects.cachedTypes(r); !found && !s.selects(r) {
		return fmt.Errorf("no config selects %s", r)
	}
	return nil
}
