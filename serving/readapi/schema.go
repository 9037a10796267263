package readapi

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/discovery/crd"
)

func fieldSchema(s *crd.Schema, name string) *crd.Schema {
	if s == nil {
		return nil
	}
	if field := s.Properties[name]; field != nil {
		return field
	}
	return s.AdditionalProperties
}

func itemSchema(s *crd.Schema) *crd.Schema {
	if s == nil {
		return nil
	}
	return s.Items
}

func isInvalidNull(value any, s *crd.Schema) bool { return value == nil && s != nil && !s.Nullable }

// dropNulls removes invalid nulls, except where a default replaces them.
func dropNulls(value any, s *crd.Schema) {
	switch v := value.(type) {
	case map[string]any:
		for name, element := range v {
			if field := fieldSchema(s, name); isInvalidNull(element, field) && field.Default == nil {
				delete(v, name)
			} else {
				dropNulls(element, field)
			}
		}
	case []any:
		for _, element := range v {
			dropNulls(element, itemSchema(s))
		}
	}
}

// fillDefaults sets the defaults of missing fields and of invalid nulls.
func fillDefaults(value any, s *crd.Schema) {
	if s == nil {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for name, field := range s.Properties {
			if field == nil || field.Default == nil {
				continue
			}
			if element, exists := v[name]; !exists || isInvalidNull(element, field) {
				v[name] = runtime.DeepCopyJSONValue(field.Default)
			}
		}
		for name, element := range v {
			field := fieldSchema(s, name)
			if s.Properties[name] == nil && isInvalidNull(element, field) {
				element = runtime.DeepCopyJSONValue(field.Default)
				v[name] = element
			}
			fillDefaults(element, field)
		}
	case []any:
		for i, element := range v {
			if isInvalidNull(element, s.Items) {
				element = runtime.DeepCopyJSONValue(s.Items.Default)
				v[i] = element
			}
			fillDefaults(element, s.Items)
		}
	}
}

// normalizeDefaults converts whole numbers in defaults to int64, the type in unstructured objects.
func normalizeDefaults(s *crd.Schema) error {
	if s == nil {
		return nil
	}
	if s.Default != nil {
		data, err := json.Marshal(s.Default)
		if err == nil {
			var value any
			err = utiljson.Unmarshal(data, &value)
			s.Default = value
		}
		if err != nil {
			return err
		}
	}
	for _, field := range s.Properties {
		if err := normalizeDefaults(field); err != nil {
			return err
		}
	}
	if err := normalizeDefaults(s.AdditionalProperties); err != nil {
		return err
	}
	return normalizeDefaults(s.Items)
}

// Conform converts an object to the form in which a kube-apiserver reads it from etcd: it drops unknown
// fields and invalid nulls, and sets defaults. It returns the paths of the unknown fields. Without a schema
// it does nothing.
func (v *Version) Conform(content map[string]any) (unknown []string) {
	if v.parsedSchema == nil {
		return nil
	}
	unknown = unknownFields(content, v.parsedSchema)
	dropNulls(content, v.parsedSchema)
	fillDefaults(content, v.parsedSchema)
	return unknown
}

// prune removes the fields of an object that are not in the schema, as a kube-apiserver does when it reads or
// converts one.
func prune(content map[string]any, s *crd.Schema) { (&pruner{}).pruneFields(content, s, true) }

// unknownFields prunes an object like prune, and returns the sorted paths of the removed fields.
func unknownFields(content map[string]any, s *crd.Schema) []string {
	p := &pruner{recordUnknown: true}
	p.pruneFields(content, s, true)
	slices.Sort(p.unknown)
	return p.unknown
}

type pruner struct {
	recordUnknown bool
	path          []string
	unknown       []string
}

func (p *pruner) withPath(part string, f func()) {
	if p.recordUnknown {
		p.path = append(p.path, part)
		defer func() { p.path = p.path[:len(p.path)-1] }()
	}
	f()
}

func (p *pruner) pruneFields(content map[string]any, s *crd.Schema, isResource bool) {
	for name, value := range content {
		if isResource && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		field := cmp.Or(s.Properties[name], s.AdditionalProperties)
		p.withPath("."+name, func() {
			switch {
			case field != nil:
				p.pruneValue(value, field)
			case !s.PreserveUnknown:
				delete(content, name)
				if p.recordUnknown {
					p.unknown = append(p.unknown, strings.TrimPrefix(strings.Join(p.path, ""), "."))
				}
			}
		})
	}
}

func (p *pruner) pruneValue(value any, s *crd.Schema) {
	switch v := value.(type) {
	case map[string]any:
		p.pruneFields(v, s, s.EmbeddedResource)
	case []any:
		if s.Items == nil {
			return
		}
		for i, element := range v {
			p.withPath("["+strconv.Itoa(i)+"]", func() { p.pruneValue(element, s.Items) })
		}
	}
}
