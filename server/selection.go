package server

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers"
)

// secrets is cached only if the config permits it.
var secrets = schema.GroupResource{Resource: "secrets"}

// selection is the set of cached types, with their indexes.
type selection struct {
	names   []string
	indexes *indexers.Config
	secrets bool
}

func newSelection(config *Config) (*selection, error) {
	s := &selection{names: slices.Clone(config.Types), indexes: &indexers.Config{}, secrets: config.Secrets}
	if len(config.IndexConfigs) == 0 {
		return s, nil
	}
	var err error
	if s.indexes, err = indexers.Load(config.IndexConfigs...); err != nil {
		return nil, err
	}
	for _, w := range s.indexes.Warnings {
		klog.InfoS("An index config has a warning", "warning", w.String())
	}
	if err := errors.Join(checkIndexNames(s.indexes), s.indexes.CheckMetricScope()); err != nil {
		return nil, err
	}
	for _, r := range s.indexes.Resources {
		name := typeNameOf(r.Match)
		if _, err := discovery.ParseName(name); err != nil {
			return nil, fmt.Errorf("resolve resource %q of an index config: %w", r.Name, err)
		}
		s.names = append(s.names, name)
	}
	return s, nil
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
	return nil
}
