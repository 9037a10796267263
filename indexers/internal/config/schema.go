package config

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// Schema gives a JSON Schema (draft 2020-12) of config files, for editors. It is made of the same Go types that
// the decoder takes its fields from. What it accepts can still be refused: it knows nothing of paths, of names
// that are taken, and of most fields that do not go together.
func Schema() []byte {
	s := schemaOf(reflect.TypeFor[configForm](), "")
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = Kind
	s["description"] = "An index config of crdcache."
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(s) // maps, lists and text always have a form
	return b.Bytes()
}

type schemaMap = map[string]any

// schemaOf gives the schema of a type of a form with the tag of its field.
func schemaOf(t reflect.Type, tag reflect.StructTag) schemaMap {
	s := schemaOfType(t, tag)
	if doc := tag.Get("doc"); doc != "" {
		s["description"] = doc
	}
	return s
}

func schemaOfType(t reflect.Type, tag reflect.StructTag) schemaMap {
	text := schemaMap{"type": "string", "minLength": 1}
	switch t {
	case reflect.TypeFor[pathForm]():
		return schemaMap{"oneOf": []any{text, schemaMap{"type": "array", "items": text, "minItems": 1}}}
	case reflect.TypeFor[textsForm]():
		return schemaMap{"type": "object", "additionalProperties": schemaMap{"type": "string"}}
	case reflect.TypeFor[groupForm]():
		return schemaMap{"type": []any{"integer", "string"}, "minimum": 0, "minLength": 1}
	case reflect.TypeFor[valueForm]():
		return schemaMap{"type": []any{"string", "number", "boolean"}}
	case reflect.TypeFor[fixedOrFieldForm]():
		fixed := text
		if tag.Get("empty") == "true" {
			fixed = schemaMap{"type": "string"}
		}
		return schemaMap{"oneOf": []any{fixed, objectSchema(reflect.TypeFor[fieldForm]())}}
	case reflect.TypeFor[targetNamespaceForm]():
		path := schemaMap{"type": "string", "pattern": `^[.$@{\[]`}
		return schemaMap{"oneOf": []any{
			schemaMap{"enum": []any{"own", "none"}}, path, schemaMap{"type": "array", "items": text, "minItems": 1}, objectSchema(t),
		}}
	case reflect.TypeFor[missingForm]():
		return schemaMap{"oneOf": []any{schemaMap{"enum": []any{"skip", "report", "null", nil}}, objectSchema(t)}}
	case reflect.TypeFor[transformForm]():
		return schemaMap{"oneOf": []any{schemaMap{"enum": []any{"lower", "upper", "trim"}}, objectSchema(t)}}
	case reflect.TypeFor[[]transformForm]():
		one := schemaOfType(t.Elem(), "")
		return schemaMap{"oneOf": []any{one["oneOf"].([]any)[0], one["oneOf"].([]any)[1], schemaMap{"type": "array", "items": one, "minItems": 1}}}
	}
	switch t.Kind() {
	case reflect.Struct:
		return objectSchema(t)
	case reflect.Slice:
		s := schemaMap{"type": "array", "items": schemaOfType(t.Elem(), tag)}
		if tag.Get("empty") == "" {
			s["minItems"] = 1
		}
		return s
	}
	return scalarSchema(t, tag)
}

// scalarSchema gives the schema of a text, a number or a boolean.
func scalarSchema(t reflect.Type, tag reflect.StructTag) schemaMap {
	s := schemaMap{"type": "string"}
	number := func(text string) any {
		n, err := strconv.Atoi(text)
		if err != nil {
			return text
		}
		return n
	}
	switch t.Kind() {
	case reflect.Int:
		s["type"] = "integer"
		s["minimum"], s["maximum"] = number(tag.Get("min")), number(tag.Get("max"))
	case reflect.Bool:
		s["type"] = "boolean"
	default:
		if tag.Get("empty") == "" {
			s["minLength"] = 1
		}
	}
	if words := tag.Get("enum"); words != "" {
		s = schemaMap{"enum": anySlice(strings.Split(words, ","))}
	}
	if word := tag.Get("const"); word != "" {
		s = schemaMap{"const": word}
	}
	if pattern := tag.Get("pattern"); pattern != "" {
		s["pattern"] = textForms[pattern].String()
		if tag.Get("empty") == "true" {
			s["pattern"] = "^$|" + textForms[pattern].String()
		}
	}
	if words := tag.Get("reserved"); words != "" {
		s["not"] = schemaMap{"enum": anySlice(strings.Split(words, ","))}
	}
	if d := tag.Get("default"); d != "" && t.Kind() == reflect.Bool {
		s["default"] = d == "true"
	} else if d != "" {
		s["default"] = number(d)
	}
	return s
}

// objectSchema gives the schema of a map with known fields.
func objectSchema(t reflect.Type) schemaMap {
	properties := schemaMap{}
	s := schemaMap{"type": "object", "additionalProperties": false, "properties": properties}
	var required, all []any
	dependent := schemaMap{}
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("json")
		if name == "" {
			all = append(all, choices(f.Tag.Get("oneOf"))...)
			if f.Tag.Get("some") == "true" {
				s["minProperties"] = 1
			}
			continue
		}
		if others := f.Tag.Get("without"); others != "" {
			for other := range strings.SplitSeq(others, ",") {
				all = append(all, schemaMap{"not": schemaMap{"required": []any{name, other}}})
			}
		}
		properties[name] = schemaOf(f.Type, f.Tag)
		if f.Tag.Get("required") == "true" {
			required = append(required, name)
		}
		if with := f.Tag.Get("with"); with != "" {
			dependent[name] = []any{with}
		}
	}
	if required != nil {
		s["required"] = required
	}
	if len(dependent) > 0 {
		s["dependentRequired"] = dependent
	}
	if all != nil {
		s["allOf"] = all
	}
	return s
}

// choices returns a schema for each set of fields of which exactly one has to be there.
func choices(sets string) (all []any) {
	if sets == "" {
		return nil
	}
	for set := range strings.SplitSeq(sets, ";") {
		var one []any
		for name := range strings.SplitSeq(set, "|") {
			one = append(one, schemaMap{"required": []any{name}})
		}
		all = append(all, schemaMap{"oneOf": one})
	}
	return all
}

func anySlice(words []string) []any {
	all := make([]any, len(words))
	for i, word := range words {
		all[i] = word
	}
	return all
}
