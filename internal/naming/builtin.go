package naming

import (
	_ "embed" // builtin.txt
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// BuiltinType is a type that every cluster has.
type BuiltinType struct {
	Group, Version, Plural, Kind string
	ShortNames, Categories       []string
	Subresources                 []string // other than status
	SelectableFields             []string // paths for field selectors, except of name and namespace
	flags                        []TypeFlag
}

// TypeFlag describes how a type is served and written.
type TypeFlag string

// The flags of types.
const (
	Namespaced          TypeFlag = "namespaced"
	HasStatus           TypeFlag = "status"              // has the status subresource
	HasGeneration       TypeFlag = "generation"          // has a generation
	UnconditionalUpdate TypeFlag = "unconditionalUpdate" // an update without a resource version is allowed
	CreateOnUpdate      TypeFlag = "createOnUpdate"      // an update creates a missing object
	AnyName             TypeFlag = "anyName"
)

func (t BuiltinType) Has(f TypeFlag) bool { return slices.Contains(t.flags, f) }

//go:embed builtin.txt
var builtinText string

// BuiltinTypes are the types in builtin.txt.
var BuiltinTypes = parseBuiltinTypes(builtinText)

func parseBuiltinTypes(text string) (types []BuiltinType) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}
		gr := schema.ParseGroupResource(words[0])
		t := BuiltinType{Group: gr.Group, Version: words[1], Plural: gr.Resource, Kind: words[2]}
		lists := map[string]*[]string{"short": &t.ShortNames, "category": &t.Categories,
			"subresources": &t.Subresources, "fields": &t.SelectableFields}
		for _, word := range words[3:] {
			if name, values, isList := strings.Cut(word, "="); isList {
				*lists[name] = strings.Split(values, ",")
			} else {
				t.flags = append(t.flags, TypeFlag(word))
			}
		}
		types = append(types, t)
	}
	return types
}

// SystemTypes are the types that define others. BuiltinTypes does not have them.
var SystemTypes = parseBuiltinTypes("apiservices.apiregistration.k8s.io v1 APIService status category=api-extensions\n" +
	"customresourcedefinitions.apiextensions.k8s.io v1 CustomResourceDefinition status short=crd,crds category=api-extensions\n")

var allBuiltinTypes = slices.Concat(BuiltinTypes, SystemTypes)

// FindBuiltinByName returns the type of a plural, singular or short name as tools write it, such as "pvs",
// "storage-classes" or "ingress".
func FindBuiltinByName(name string) (BuiltinType, bool) {
	name = strings.ReplaceAll(name, "-", "")
	return Find(allBuiltinTypes, func(t BuiltinType) bool {
		return name == t.Plural || name == strings.ToLower(t.Kind) || slices.Contains(t.ShortNames,
			strings.TrimSuffix(name, "s"))
	})
}

// FindBuiltin returns the type of a group and kind or, with an empty kind, plural name.
func FindBuiltin(group, kind, plural string) (BuiltinType, bool) {
	return Find(allBuiltinTypes, func(t BuiltinType) bool {
		return t.Group == group && (kind == "" && t.Plural == plural || kind != "" && t.Kind == kind)
	})
}

// GuessPlural returns the plural that tools like controller-gen give to a kind by default. It replaces
// apimachinery's UnsafeGuessKindToResource, which makes gatewaies of Gateway and meshs of Mesh.
func GuessPlural(kind string) string {
	name := strings.ToLower(kind)
	hasSuffix := func(suffixes ...string) bool {
		return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(name, s) })
	}
	switch {
	case hasSuffix("endpoints", "metadata"):
		return name
	case hasSuffix("ay", "ey", "iy", "oy", "uy"):
		return name + "s"
	case hasSuffix("y"):
		return strings.TrimSuffix(name, "y") + "ies"
	case hasSuffix("s", "x", "ch", "sh"):
		return name + "es"
	}
	return name + "s"
}

// FormatCount returns a number with a noun, in the plural if needed.
func FormatCount(n int, noun string) string {
	if n != 1 {
		noun = GuessPlural(noun)
	}
	return fmt.Sprintf("%d %s", n, noun)
}
