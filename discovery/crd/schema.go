package crd

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Schema is the structural OpenAPI schema of one field. It has no validation rules.
type Schema struct {
	// Type is object, array, string, integer, number, boolean; empty with IntOrString and PreserveUnknown.
	Type     string `json:"type,omitempty"`
	Format   string `json:"format,omitempty"`
	Nullable bool   `json:"nullable,omitempty"`
	// Properties are the named fields of an object.
	Properties map[string]*Schema `json:"properties,omitempty"`
	// AdditionalProperties describes the values of a map with arbitrary keys.
	AdditionalProperties *Schema `json:"additionalProperties,omitempty"`
	// Items describes the elements of an array.
	Items   *Schema `json:"items,omitempty"`
	Enum    []any   `json:"enum,omitempty"`
	Default any     `json:"default,omitempty"`
	Pattern string  `json:"pattern,omitempty"`
	// MaxLength, MaxItems and MaxProperties limit the sizes of texts, arrays and maps.
	MaxLength     *int64 `json:"maxLength,omitempty"`
	MaxItems      *int64 `json:"maxItems,omitempty"`
	MaxProperties *int64 `json:"maxProperties,omitempty"`

	// PreserveUnknown fields may contain anything that the schema does not describe.
	PreserveUnknown bool `json:"x-kubernetes-preserve-unknown-fields,omitempty"`
	// IntOrString fields contain either an integer or a string.
	IntOrString bool `json:"x-kubernetes-int-or-string,omitempty"`
	// EmbeddedResource fields contain a complete Kubernetes object.
	EmbeddedResource bool `json:"x-kubernetes-embedded-resource,omitempty"`
	// ListType is set, map or atomic for an array; empty means atomic.
	ListType string `json:"x-kubernetes-list-type,omitempty"`
	// ListMapKeys are the fields that identify an element of a list map.
	ListMapKeys []string `json:"x-kubernetes-list-map-keys,omitempty"`

	// NameOf is the word after "name of" in the description, such as Secret. The rest is omitted.
	NameOf string `json:"-"`
}

var nameOf = regexp.MustCompile(
	`^(?s:.{0,40})\b[Nn]ame of (?:(?:an?|the|existing|generated|referenced|Kubernetes|k8s) )*([\w-]+)`)

// UnmarshalJSON also accepts true and false, which are valid for additionalProperties: true allows any
// values, like PreserveUnknown.
func (s *Schema) UnmarshalJSON(data []byte) error {
	switch trimmed := bytes.TrimSpace(data); {
	case bytes.Equal(trimmed, []byte("true")):
		*s = Schema{PreserveUnknown: true}
		return nil
	case bytes.Equal(trimmed, []byte("false")):
		*s = Schema{}
		return nil
	}
	type plain Schema // without this method
	described := struct {
		*plain
		Description string `json:"description"`
	}{plain: (*plain)(s)}
	if err := json.Unmarshal(data, &described); err != nil {
		return err
	}
	if name := nameOf.FindStringSubmatch(described.Description); name != nil {
		s.NameOf = strings.Clone(name[1])
	}
	for name, property := range s.Properties {
		if property == nil { // null: a property of any type
			s.Properties[name] = &Schema{}
		}
	}
	return nil
}

// Fields returns the names of the properties, sorted.
func (s *Schema) Fields() []string {
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.Properties))
}
