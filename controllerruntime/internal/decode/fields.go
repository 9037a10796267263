package decode

import (
	"reflect"
	"strings"
	"unicode"
)

// named is a field that encoding/json decodes into, by its name in JSON.
type named struct {
	name   string
	offset uintptr
	typ    reflect.Type
	depth  int
}

// fieldsOf returns the fields of a struct by the rules of encoding/json: of several with one name that counts
// which is embedded less deep. It is not ok for what is left to that: names that are ambiguous, options,
// embedded pointers.
func fieldsOf(typ reflect.Type) (fields []named, ok bool) {
	all, ok := collect(nil, typ, 0, 0)
	if !ok {
		return nil, false
	}
	at := map[string]int{}
	for _, f := range all {
		k, taken := at[f.name]
		switch {
		case !taken:
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

func collect(all []named, typ reflect.Type, offset uintptr, depth int) ([]named, bool) {
	for f := range typ.Fields() {
		tag, tagged := f.Tag.Lookup("json")
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if !isName(name) {
			name = ""
		}
		if f.Anonymous && name == "" {
			ok := f.Type.Kind() == reflect.Struct
			if !ok && (f.IsExported() || f.Type.Kind() == reflect.Pointer) {
				return nil, false
			}
			if ok {
				if all, ok = collect(all, f.Type, offset+f.Offset, depth+1); !ok {
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
		for option := range strings.SplitSeq(options, ",") {
			if tagged && option == "string" {
				return nil, false
			}
		}
		if name == "" {
			name = f.Name
		}
		all = append(all, named{name: name, offset: offset + f.Offset, typ: f.Type, depth: depth})
	}
	return all, true
}

// isName reports whether encoding/json takes a tag for a name. Names that JSON has to escape are left to it.
func isName(name string) bool {
	if name == "" {
		return false
	}
	for _, c := range name {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) &&
			!unicode.IsDigit(c) {
			return false
		}
	}
	return true
}
