package indexers

import (
	"fmt"
	"maps"
	"slices"

	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/jsontext"
)

// eachPath returns the path at which elements are found; see elementsOf.
func (i *Index) eachPath() *jsonpath.Path {
	if i.containers != nil {
		return i.containers
	}
	return i.each
}

// elementsOf yields the elements of a value at eachPath: the members of a map with their keys, the elements
// of a list, or the value itself. A metric takes null for a list that is not set.
func (i *Index) elementsOf(v any, yield func(key string, decoded any)) {
	members, isMap := v.(map[string]any)
	list, isList := v.([]any)
	switch {
	case v == nil && i.eachOfLists:
	case isMap && i.containers != nil:
		for _, key := range slices.Sorted(maps.Keys(members)) {
			yield(key, members[key])
		}
	case isList && i.eachOfLists:
		for _, e := range list {
			yield("", e)
		}
	case i.containers == nil:
		yield("", v)
	}
}

var listElements = jsonpath.MustCompile("[*]")

// rawElements is elementsOf for a value in a valid document.
func (i *Index) rawElements(v jsonpath.Value, yield func(key string, raw []byte)) {
	switch {
	case v.Kind() == jsonpath.KindNull && i.eachOfLists:
	case v.Kind() == jsonpath.KindObject && i.containers != nil:
		members := map[string][]byte{}
		for m := range jsontext.Members(v.Raw()) {
			members[string(m.Key)] = m.Value
		}
		for _, key := range slices.Sorted(maps.Keys(members)) {
			yield(key, members[key])
		}
	case v.Kind() == jsonpath.KindArray && i.eachOfLists:
		_ = listElements.FindJSON(v.Raw(), func(e jsonpath.Value) bool {
			yield("", e.Raw())
			return true
		})
	case i.containers == nil:
		yield("", v.Raw())
	}
}

// printedScalar returns a value as Go prints it: [a b] for a list, and map[k:v] for a map.
func printedScalar(v any) scalar { return scalar{jsonpath.KindString, fmt.Sprint(v)} }

// entriesOf returns the keys and values of a map as one text for SplitValue: the values that have a text, in
// the order of the keys. An empty map is missing.
func entriesOf(v any, textOf func(any) scalar) scalar {
	members, ok := v.(map[string]any)
	if !ok && v != nil {
		return scalar{}
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if value := textOf(members[key]); value.text != "" {
			parts = append(parts, key, value.text)
		}
	}
	if len(parts) == 0 {
		return scalar{kind: jsonpath.KindNull}
	}
	return scalar{jsonpath.KindString, Value(parts...)}
}
