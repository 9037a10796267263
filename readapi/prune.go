package readapi

import (
	"slices"
	"strconv"
	"strings"

	"github.com/crdcache/crdcache/discovery/crd"
)

// prune removes the fields of an object that are not in the schema, as a kube-apiserver does when it reads or
// converts one.
func prune(content map[string]any, s *crd.Schema) { (&pruner{}).object(content, s, true) }

// unknownFields is prune that returns the sorted paths of the removed fields.
func unknownFields(content map[string]any, s *crd.Schema) []string {
	p := &pruner{track: true}
	p.object(content, s, true)
	slices.Sort(p.unknown)
	return p.unknown
}

type pruner struct {
	track   bool // record unknown
	path    []string
	unknown []string
}

// within calls f with a longer path.
func (p *pruner) within(part string, f func()) {
	if p.track {
		p.path = append(p.path, part)
		defer func() { p.path = p.path[:len(p.path)-1] }()
	}
	f()
}

func (p *pruner) object(content map[string]any, s *crd.Schema, resource bool) {
	for name, value := range content {
		if resource && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		field := s.Properties[name]
		if field == nil {
			field = s.AdditionalProperties
		}
		p.within("."+name, func() {
			switch {
			case field != nil:
				p.value(value, field)
			case !s.PreserveUnknown:
				delete(content, name)
				if p.track {
					p.unknown = append(p.unknown, strings.TrimPrefix(strings.Join(p.path, ""), "."))
				}
			}
		})
	}
}

func (p *pruner) value(value any, s *crd.Schema) {
	switch v := value.(type) {
	case map[string]any:
		p.object(v, s, s.EmbeddedResource)
	case []any:
		if s.Items == nil {
			return
		}
		for i, element := range v {
			p.within("["+strconv.Itoa(i)+"]", func() { p.value(element, s.Items) })
		}
	}
}
