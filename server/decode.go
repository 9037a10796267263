package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// decode reads a config from YAML over what it has. Names of fields count as they are written; unknown ones,
// those that are there twice, and values that do not fit are told together, each with the name of its field.
func decode(text []byte, config *Config) error {
	document, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	if bytes.Equal(bytes.TrimSpace(document), []byte("null")) {
		return nil // an empty file
	}
	if problems := misfits(document, reflect.TypeFor[Config](), ""); len(problems) > 0 {
		return errors.Join(problems...)
	}
	unknown, err := kjson.UnmarshalStrict(document, config)
	return errors.Join(append(unknown, err)...)
}

// misfits returns what of a value cannot be read as a type, by the names of fields, which encoding/json tells
// only of some.
func misfits(document []byte, as reflect.Type, path string) []error {
	if as.Kind() == reflect.Pointer {
		as = as.Elem()
	}
	fields := map[string]json.RawMessage{}
	if !isPlain(as) || json.Unmarshal(document, &fields) != nil {
		err := kjson.UnmarshalCaseSensitivePreserveInts(document, reflect.New(as).Interface())
		if err == nil {
			return nil
		}
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			err = fmt.Errorf("a %s is no %s", wrong.Value, wrong.Type)
		}
		return []error{fmt.Errorf("%s: %w", path, err)}
	}
	var problems []error
	for _, field := range reflect.VisibleFields(as) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if value, ok := fields[name]; ok {
			problems = append(problems, misfits(value, field.Type, strings.TrimPrefix(path+"."+name, "."))...)
		}
	}
	return problems
}

// isPlain reports whether a type is a struct of this package, which is read field by field.
func isPlain(t reflect.Type) bool {
	return slices.Contains([]reflect.Type{
		reflect.TypeFor[Config](), reflect.TypeFor[PageConfig](), reflect.TypeFor[WatchConfig](),
		reflect.TypeFor[Limits](),
	}, t)
}
