package server

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/readapi/live"
)

// secretsResource is cached only if the config permits it.
var secretsResource = schema.GroupResource{Resource: "secrets"}

// selection selects the cached types and their indexes. It is immutable; see typeCache.changeSelection.
type selection struct {
	// typeNames and indexes are those of the config file and its index configs.
	typeNames []string
	indexes   *indexers.Config
	// objects are the custom resources.
	objects      *objectConfig
	cacheSecrets bool
	storage      dynamicinformer.Storage
}

// fileTypeNames returns the names and patterns of types in the config file and its index configs.
func (s *selection) fileTypeNames() []string {
	names := slices.Clone(s.typeNames)
	for _, r := range s.indexes.Resources {
		names = append(names, matchTypeName(r.Match))
	}
	return names
}

// settings returns the settings of the reconciler. The error joins the problems of the files.
func (s *selection) settings() (settings live.Settings, err error) {
	problems := []error{validateIndexNames(s.indexes), s.indexes.CheckMetricScope()}
	for _, r := range s.indexes.Resources {
		if _, err := discovery.ParseName(matchTypeName(r.Match)); err != nil {
			problems = append(problems, fmt.Errorf("resolve resource %q of an index config: %w", r.Name, err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return settings, err
	}
	settings = live.Settings{
		InformerOptions: s.informerOptions, Exclude: s.excludeErr,
		Metrics: func(r discovery.Resource) []*indexers.Metric {
			return s.indexes.MetricsOf(r.GVR, r.GVK.Kind)
		},
		References: func(r discovery.Resource) []*indexers.Reference {
			return s.indexes.ReferencesOf(r.GVR, r.GVK.Kind)
		},
	}
	settings.Selection, err = discovery.NewSelection(append(s.fileTypeNames(), s.objects.names()...)...)
	return settings, err
}

// informerOptions returns the options of a type and its indexes. Files take precedence over custom resources.
func (s *selection) informerOptions(r discovery.Resource) (dynamicinformer.ResourceOptions,
	[]*indexers.Index) {
	indexes := s.indexes.IndexesOf(r.GVR, r.GVK.Kind)
	for _, index := range s.objects.indexes[r.GVR] { // a new file can have the name of an index
		if !slices.ContainsFunc(indexes, func(x *indexers.Index) bool { return x.Name == index.Name }) {
			indexes = append(indexes, index)
		}
	}
	if provider, found := s.objects.providerOf(r); found && !s.selectedByFiles(r) {
		if options, err := informerOptions(provider.resource()); err == nil { // parseObject has checked them
			return options, indexes
		}
	}
	return dynamicinformer.ResourceOptions{Storage: s.storage}, indexes
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
	if r.GVR.GroupResource() == secretsResource && !s.cacheSecrets {
		return errors.New("secrets are cached only if the config sets secrets: true")
	}
	if _, found := s.objects.providerOf(r); !found && !s.selectedByFiles(r) {
		return fmt.Errorf("no config selects %s: write its plural name in match.resource", r)
	}
	return nil
}
