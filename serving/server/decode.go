package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/internal/naming"
)

// decode decodes YAML into config. Fields that the YAML lacks keep their values. Field names are
// case-sensitive. decode checks for invalid YAML and duplicate fields, then for values of the wrong type,
// then for unknown fields. It returns all errors of the first check that fails. Errors of the last two checks
// have the paths of the fields.
func decode(text []byte, config *Config) error {
	document, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	if bytes.Equal(bytes.TrimSpace(document), []byte("null")) {
		return nil // an empty file
	}
	if problems := typeErrors(document, reflect.TypeFor[Config](), ""); len(problems) > 0 {
		return errors.Join(problems...)
	}
	unknown, err := kjson.UnmarshalStrict(document, config)
	return errors.Join(append(unknown, err)...)
}

// typeErrors returns an error for each value of the wrong type, with the path of its field. encoding/json
// returns only some of them.
func typeErrors(document []byte, typ reflect.Type, path string) []error {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ == reflect.TypeFor[resource.Quantity]() {
		text := string(document)            // of a number, or null
		_ = json.Unmarshal(document, &text) // others are no quantities
		if _, err := naming.ParseQuantity(text); err != nil {
			return []error{fmt.Errorf("%s: %w", path, err)}
		}
		return nil
	}
	fields := map[string]json.RawMessage{}
	if !isConfigStruct(typ) || json.Unmarshal(document, &fields) != nil {
		err := kjson.UnmarshalCaseSensitivePreserveInts(document, reflect.New(typ).Interface())
		if err == nil {
			return nil
		}
		var typeErr *json.UnmarshalTypeError
		if errors.As(err, &typeErr) {
			err = fmt.Errorf("cannot decode a JSON %s into a field of type %s", typeErr.Value, typeErr.Type)
		}
		return []error{fmt.Errorf("%s: %w", path, err)}
	}
	var problems []error
	for _, field := range reflect.VisibleFields(typ) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if value, ok := fields[name]; ok {
			problems = append(problems,
				typeErrors(value, field.Type, strings.TrimPrefix(path+"."+name, "."))...)
		}
	}
	return problems
}

func isConfigStruct(t reflect.Type) bool {
	return slices.Contains([]reflect.Type{
		reflect.TypeFor[Config](), reflect.TypeFor[PageConfig](), reflect.TypeFor[WatchConfig](),
		reflect.TypeFor[Limits](),
	}, t)
}
