package readapi

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/discovery/crd"
)

// fieldSchema is the schema of a field of an object, or nil.
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

// refusesNull reports whether a value is null where the schema does not allow that.
func refusesNull(value any, s *crd.Schema) bool { return value == nil && s != nil && !s.Nullable }

// dropNulls removes null from fields that cannot be null, unless a default takes its place.
func dropNulls(value any, s *crd.Schema) {
	switch v := value.(type) {
	case map[string]any:
		for name, element := range v {
			if field := fieldSchema(s, name); refusesNull(element, field) && field.Default == nil {
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

// fillDefaults puts the defaults of the schema where there is nothing, or a null that the schema does not
// allow.
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
			if element, there := v[name]; !there || refusesNull(element, field) {
				v[name] = runtime.DeepCopyJSONValue(field.Default)
			}
		}
		for name, element := range v {
			field := fieldSchema(s, name)
			if s.Properties[name] == nil && refusesNull(element, field) {
				element = runtime.DeepCopyJSONValue(field.Default)
				v[name] = element
			}
			fillDefaults(element, field)
		}
	case []any:
		for i, element := range v {
			if refusesNull(element, s.Items) {
				element = runtime.DeepCopyJSONValue(s.Items.Default)
				v[i] = element
			}
			fillDefaults(element, s.Items)
		}
	}
}

// normalizeDefaults gives defaults the Go types of the fields of an unstructured object: whole numbers are
// int64.
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

// conform makes an object in place what a kube-apiserver makes of a custom resource that it reads: without
// unknown fields and null where it cannot be, with defaults. Without a schema it stays as it is. It returns
// the paths of unknown fields.
func (v *Version) conform(content map[string]any) (unknown []string) {
	if v.structure == nil {
		return nil
	}
	unknown = unknownFields(content, v.structure)
	dropNulls(content, v.structure)
	fillDefaults(content, v.structure)
	return unknown
}
