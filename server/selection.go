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

// wanted are the types that are meant, one version of each, and what is meant and cannot be kept, by name.
func (s *selection) wanted(catalog *discovery.Catalog) (types map[schema.GroupResource]discovery.Resource, problems map[string]error) {
	types, problems = map[schema.GroupResource]discovery.Resource{}, map[string]error{}
	for _, name := range s.names {
		found, err := catalog.Resolve(name)
		if err != nil {
			problems[name] = err
			continue
		}
		pattern := isPattern(name)
		for _, r := range found.Resources {
			gr := r.GVR.GroupResource()
			_, taken := types[gr]
			switch {
			case taken:
			case gr == secrets && !s.secrets && !pattern:
				problems[name] = errors.New("secrets are kept only where the config says secrets: true")
			case gr == secrets && !s.secrets:
			case !r.Watchable():
				problems[name] = fmt.Errorf("%s cannot be listed and watched", r)
			default:
				types[gr] = r
			}
		}
	}
	return types, problems
}

// isPattern reports whether a name stands for any number of types.
func isPattern(name string) bool { return slices.Contains([]byte(name), '*') }
