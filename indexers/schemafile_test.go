package indexers

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// Schema returns a JSON Schema (draft 2020-12) of config files for editors. It is generated from the Go types
// of the decoder. It is more lenient than [Parse]: it does not check paths, duplicate names and most
// combinations of fields.
func Schema() []byte {
	s := fieldSchema(reflect.TypeFor[configForm](), "")
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = Kind
	s["description"] = "An index config of crdcache."
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(s) // maps, lists and texts can always be encoded
	return b.Bytes()
}

type schemaMap = map[string]any

func fieldSchema(t reflect.Type, tag reflect.StructTag) schemaMap {
	s := typeSchema(t, tag)
	if doc := tag.Get("doc"); doc != "" {
		s["description"] = doc
	}
	return s
}

func typeSchema(t reflect.Type, tag reflect.StructTag) schemaMap {
	switch t {
	case reflect.TypeFor[textsForm]():
		return schemaMap{"type": "object", "additionalProperties": schemaMap{"type": "string"}}
	case reflect.TypeFor[pathForm](), reflect.TypeFor[textField](), reflect.TypeFor[numberField](),
		reflect.TypeFor[boolField]():
		return scalarSchema(t, tag)
	}
	items, ok := t.FieldByName("items") // of a listField
	if !ok {
		return objectSchema(t)
	}
	item := typeSchema(items.Type.Elem(), tag)
	list := schemaMap{"type": "array", "items": item}
	if tag.Get("empty") == "" {
		list["minItems"] = 1
	}
	return list
}

// scalarSchema returns the schema of a text, a number or a boolean.
func scalarSchema(t reflect.Type, tag reflect.StructTag) schemaMap {
	schema := schemaMap{"type": "string"}
	number := func(text string) any {
		n, err := strconv.Atoi(text)
		if err != nil {
			return text
		}
		return n
	}
	switch t {
	case reflect.TypeFor[numberField]():
		schema["type"] = "integer"
		schema["minimum"], schema["maximum"] = number(tag.Get("min")), number(tag.Get("max"))
	case reflect.TypeFor[boolField]():
		schema["type"] = "boolean"
	default:
		if tag.Get("empty") == "" || t == reflect.TypeFor[pathForm]() { // "empty" is about the list
			schema["minLength"] = 1
		}
	}
	if words := tag.Get("enum") + tag.Get("const"); words != "" {
		schema = schemaMap{"type": "string", "enum": anySlice(strings.Split(words, ","))}
	}
	if pattern := tag.Get("pattern"); pattern != "" {
		schema["pattern"] = textRules[pattern].expression
		if tag.Get("empty") == "true" {
			schema["pattern"] = "^$|" + textRules[pattern].expression
		}
	}
	if words := tag.Get("reserved"); words != "" {
		schema["not"] = schemaMap{"enum": anySlice(strings.Split(words, ","))}
	}
	if d := tag.Get("default"); d != "" && t == reflect.TypeFor[boolField]() {
		schema["default"] = d == "true"
	} else if d != "" {
		schema["default"] = number(d)
	}
	return schema
}

// objectSchema returns the schema of a map with known fields.
func objectSchema(t reflect.Type) schemaMap {
	properties := schemaMap{}
	schema := schemaMap{"type": "object", "additionalProperties": false, "properties": properties}
	var names, allNames []any
	formLayout := layoutOf(t)
	for _, rule := range formLayout.rules {
		if set := rule.Get("oneOf"); set != "" {
			var one []any
			for name := range strings.SplitSeq(set, "|") {
				one = append(one, schemaMap{"required": []any{name}})
			}
			choice := schemaMap{"oneOf": one}
			switch {
			case rule.Get("none") == "":
				choice = schemaMap{"not": schemaMap{"allOf": one}}
			case rule.Get("both") == "":
				choice = schemaMap{"anyOf": one}
			}
			allNames = append(allNames, choice)
		}
		if rule.Get("some") != "" {
			schema["minProperties"] = 1
		}
	}
	for i, name := range formLayout.names {
		f := formLayout.fields[i]
		if others := f.Tag.Get("without"); others != "" {
			for other := range strings.SplitSeq(others, ",") {
				allNames = append(allNames, schemaMap{"not": schemaMap{"required": []any{name, other}}})
			}
		}
		properties[name] = fieldSchema(f.Type, f.Tag)
		if f.Tag.Get("required") == "true" {
			names = append(names, name)
		}
		if companion := f.Tag.Get("with"); companion != "" {
			allNames = append(allNames, schemaMap{"anyOf": []any{schemaMap{"required": []any{companion}},
				schemaMap{"not": schemaMap{"required": []any{name}}}}})
		}
	}
	if names != nil {
		schema["required"] = names
	}
	if allNames != nil {
		schema["allOf"] = allNames
	}
	return schema
}

func anySlice(words []string) []any {
	values := make([]any, len(words))
	for i, word := range words {
		values[i] = word
	}
	return values
}
