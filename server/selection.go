package server

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers"
)

// secrets is the type that is only served on request.
var secrets = schema.GroupResource{Resource: "secrets"}

// selection says which types of a cluster are kept, with which indexes.
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
	if err := checkIndexNames(s.indexes); err != nil {
		return nil, err
	}
	for _, r := range s.indexes.Resources {
		name := nameOf(r.Match)
		if _, err := discovery.ParseName(name); err != nil {
			return nil, fmt.Errorf("the resource %q of an index config cannot be looked up: %w", r.Name, err)
		}
		s.names = append(s.names, name)
	}
	return s, nil
}

// nameOf is a match as a name that discovery knows.
func nameOf(m indexers.Match) string {
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

// excludes returns why a type is not kept that is named or fits a pattern; nil where it is.
func (s *selection) excludes(r discovery.Resource) error {
	if r.GVR.GroupResource() == secrets && !s.secrets {
		return errors.New("secrets are kept only where the config says secrets: true")
	}
	return nil
}
