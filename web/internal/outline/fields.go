package outline

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Field is a changed field.
type Field struct {
	// Path is the path of the field, with indexes of list elements. It is the path in the outline of the
	// object after the change or, for a removed field, before it.
	Path string `json:"path"`
	// Label is the path for people: [type=Ready] is the list element with that type.
	Label string `json:"label"`
	// Op is added, removed or changed.
	Op string `json:"op"`
	// Before and After are the values as JSON, possibly truncated.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// By has the field managers of the change, as far as managedFields show them.
	By []Manager `json:"by,omitempty"`

	steps []step
}

const (
	// maxFields limits the fields of a change, maxValue the bytes of a value.
	maxFields = 200
	maxValue  = 400
	// maxDepth limits the depth of the comparison.
	maxDepth = 60
)

// identityFields are the fields that identify list elements, by preference. Most types with listType=map use
// one of them.
var identityFields = []string{"type", "name", "key", "id", "uid", "ip", "containerPort", "port", "topologyKey",
	"devicePath", "mountPath"}

// Fields compares two states of an object. more is the number of omitted changes. It ignores managedFields
// and the resource version, which every write changes. If before or after is nil, it returns nothing.
func Fields(before, after map[string]any) (fields []Field, more int) {
	if before == nil || after == nil {
		return nil, 0
	}
	c := &comparison{}
	c.maps(nil, before, after)
	managers := readManagers(before, after)
	for i := range c.fields {
		c.fields[i].By = managers.changedBy(c.fields[i])
	}
	return c.fields, c.more
}

// step is one step of a path: a key or a list element. An element has an index and, if it is an object,
// possibly an identity field.
type step struct {
	key      string
	index    int // of an element; -1 for a key
	element  any // of an element
	identity string
}

type comparison struct {
	fields []Field
	more   int
}

func (c *comparison) maps(path []step, before, after map[string]any) {
	keys := slices.Collect(maps.Keys(after))
	for key := range before {
		if _, both := after[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if len(path) == 1 && path[0].key == "metadata" && (key == "managedFields" || key == "resourceVersion") {
			continue
		}
		old, was := before[key]
		value, is := after[key]
		c.values(append(slices.Clip(path), step{key: key, index: -1}), old, value, was, is)
	}
}

func (c *comparison) values(path []step, before, after any, was, is bool) {
	if was && is {
		if reflect.DeepEqual(before, after) {
			return
		}
		switch old := before.(type) {
		case map[string]any:
			if value, ok := after.(map[string]any); ok && len(path) < maxDepth {
				c.maps(path, old, value)
				return
			}
		case []any:
			if value, ok := after.([]any); ok && len(path) < maxDepth {
				c.lists(path, old, value)
				return
			}
		}
	}
	if len(c.fields) >= maxFields {
		c.more++
		return
	}
	f := Field{Op: "changed", steps: path}
	f.Path, f.Label = pathAndLabel(path)
	if was {
		f.Before = value(before)
	}
	if is {
		f.After = value(after)
	}
	switch {
	case !was:
		f.Op = "added"
	case !is:
		f.Op = "removed"
	}
	c.fields = append(c.fields, f)
}

func (c *comparison) lists(path []step, before, after []any) {
	if key := identity(before, after); key != "" {
		c.sets(path, key, before, after)
		return
	}
	for i := range max(len(before), len(after)) {
		var old, value any
		was, is := i < len(before), i < len(after)
		s := step{index: i}
		if was {
			old, s.element = before[i], before[i]
		}
		if is {
			value, s.element = after[i], after[i]
		}
		c.values(append(slices.Clip(path), s), old, value, was, is)
	}
}

// sets compares lists whose elements have an identity field. It ignores their order.
func (c *comparison) sets(path []step, key string, before, after []any) {
	olds := map[any]any{}
	for _, element := range before {
		olds[element.(map[string]any)[key]] = element
	}
	for i, element := range after {
		id := element.(map[string]any)[key]
		old, was := olds[id]
		delete(olds, id)
		c.values(append(slices.Clip(path), step{index: i, element: element, identity: key}), old,
			element, was, true)
	}
	for i, element := range before {
		if _, gone := olds[element.(map[string]any)[key]]; gone {
			c.values(append(slices.Clip(path), step{index: i, element: element, identity: key}), element,
				nil, true, false)
		}
	}
}

// identity returns the field that identifies the elements of all lists, or "".
func identity(lists ...[]any) string {
	return firstOf(identityFields, func(key string) bool {
		for _, list := range lists {
			seen := map[any]bool{}
			for _, element := range list {
				object, _ := element.(map[string]any)
				switch id := object[key].(type) {
				case string, int64:
					if seen[id] {
						return false
					}
					seen[id] = true
				default:
					return false
				}
			}
		}
		return true
	})
}

func firstOf(names []string, holds func(string) bool) string {
	if i := slices.IndexFunc(names, holds); i >= 0 {
		return names[i]
	}
	return ""
}

func pathAndLabel(at []step) (path, label string) {
	var b strings.Builder
	for _, s := range at {
		switch {
		case s.index < 0:
			path = Join(path, s.key)
			b.WriteString(Join("", s.key))
		case s.identity != "":
			path = Join(path, strconv.Itoa(s.index))
			b.WriteString("[" + s.identity + "=" + truncateValue(s.element.(map[string]any)[s.identity],
				80) + "]")
		default:
			path = Join(path, strconv.Itoa(s.index))
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		}
	}
	return path, b.String()
}

func value(v any) string {
	if text, ok := v.(string); ok {
		return truncate(Scalar(text), maxValue)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return truncate(string(out), maxValue)
}

func truncateValue(v any, most int) string {
	if text, ok := v.(string); ok {
		return truncate(text, most)
	}
	return truncate(value(v), most)
}

// truncate truncates a text to a number of bytes, between characters.
func truncate(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
