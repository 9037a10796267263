package decode

import (
	"cmp"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// jsonField is a field with its name in JSON.
type jsonField struct {
	name   string
	offset uintptr
	typ    reflect.Type
	depth  int
}

// fieldsOf returns the fields of a struct by the rules of encoding/json: fields of embedded structs are
// included, and the least nested field of a name wins. It returns false for structs that need the general
// decoder: with ambiguous names, options, or embedded pointers.
func fieldsOf(typ reflect.Type) (fields []jsonField, ok bool) {
	collected, ok := collectFields(nil, typ, 0, 0)
	if !ok {
		return nil, false
	}
	at := map[string]int{}
	for _, f := range collected {
		k, exists := at[f.name]
		switch {
		case !exists:
			at[f.name] = len(fields)
			fields = append(fields, f)
		case fields[k].depth == f.depth:
			return nil, false
		case f.depth < fields[k].depth:
			fields[k] = f
		}
	}
	return fields, len(fields) <= maxFields
}

var ordinaryName = regexp.MustCompile(`^[\w./$-]*$`)

func collectFields(fields []jsonField, typ reflect.Type, offset uintptr, depth int) ([]jsonField, bool) {
	for f := range typ.Fields() {
		tag := f.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if !ordinaryName.MatchString(name) {
			return nil, false // encoding/json may not accept it
		}
		if f.Anonymous && name == "" {
			ok := f.Type.Kind() == reflect.Struct
			if !ok && (f.IsExported() || f.Type.Kind() == reflect.Pointer) {
				return nil, false
			}
			if ok {
				if fields, ok = collectFields(fields, f.Type, offset+f.Offset, depth+1); !ok {
					return nil, false
				}
			}
			continue
		}
		if !f.IsExported() {
			if f.Anonymous {
				return nil, false
			}
			continue
		}
		if slices.Contains(strings.Split(options, ","), "string") {
			return nil, false
		}
		name = cmp.Or(name, f.Name)
		fields = append(fields, jsonField{name: name, offset: offset + f.Offset, typ: f.Type, depth: depth})
	}
	return fields, true
}
