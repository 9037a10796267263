package cli

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/builtin"
)

// suggestedReference is a reference as a person reads it.
type suggestedReference struct {
	Name string          `yaml:"name"`
	Each string          `yaml:"each,omitempty"`
	To   suggestedTarget `yaml:"to"`
}

type suggestedTarget struct {
	// Group is nil beside APIVersion.
	Group      any             `yaml:"group,omitempty"`
	APIVersion *suggestedField `yaml:"apiVersion,omitempty"`
	// Kind is a text or a field, as Group is.
	Kind      any    `yaml:"kind"`
	Name      string `yaml:"name"`
	Namespace string `yaml:"namespace,omitempty"`
}

type suggestedField struct {
	Path string `yaml:"path"`
	// Missing is nil where nothing stands for a missing one: a guess would make references of what may be none.
	Missing *string `yaml:"missing,omitempty"`
}

// referenceTypes are the kinds of the core group that fields refer to by their names: secretRef, tokenSecretRef.
var referenceTypes = []struct{ suffix, kind string }{
	{"secret", "Secret"}, {"configmap", "ConfigMap"}, {"serviceaccount", "ServiceAccount"}, {"service", "Service"},
	{"node", "Node"}, {"pod", "Pod"},
}

// proposeReferences gives the references that a schema suggests: fields called something like issuerRef or parentRefs
// whose name says which object is meant.
func proposeReferences(group string, known knownTypes, fields []schemaField) []suggestedReference {
	var all []suggestedReference
	for _, f := range fields {
		base, ok := referenceName(f.name)
		if !ok || withinConditions(f.path) {
			continue
		}
		object, path, each := f.schema, f.path, ""
		if object.Items != nil {
			object, path, each = object.Items, "", f.path+"[*]"
		} else if f.lists > 0 {
			end := strings.LastIndex(f.path, "[*]") + len("[*]")
			path, each = f.path[end:], f.path[:end]
		}
		if name := object.Properties["name"]; name == nil || name.Type != "string" {
			continue
		}
		if to, ok := targetOf(object, path, base, group, known); ok {
			all = append(all, suggestedReference{Name: f.path, Each: each, To: to})
		}
	}
	return all
}

// referenceName gives what the name of a field says that it refers to.
func referenceName(name string) (string, bool) {
	for _, suffix := range []string{"References", "Reference", "Refs", "Ref"} {
		if base, ok := strings.CutSuffix(name, suffix); ok {
			return base, true
		}
	}
	return "", strings.EqualFold(name, "ref") || strings.EqualFold(name, "refs")
}

// targetOf returns the target of an object with a name, or false if the schema does not say its type.
func targetOf(object *crd.Schema, path, base, group string, types knownTypes) (suggestedTarget, bool) {
	to := suggestedTarget{Name: path + ".name"}
	if s := object.Properties["namespace"]; s != nil && s.Type == "string" {
		to.Namespace = path + ".namespace"
	}
	known := types.kindNamed(group, base)
	kind := object.Properties["kind"]
	if kind == nil || kind.Type != "string" {
		lower := strings.ToLower(base)
		for _, t := range referenceTypes {
			if strings.HasSuffix(lower, t.suffix) {
				to.Group, to.Kind = "", t.kind
				return to, true
			}
		}
		to.Group, to.Kind = group, known
		return to, known != ""
	}
	to.Kind = suggestedField{path + ".kind", defaultOf(kind, known)}
	if known != "" { // the only guess: issuerRef without a group, where the group has a kind Issuer
		known = group
	}
	for _, field := range []string{"group", "apiGroup"} {
		if s := object.Properties[field]; s != nil && s.Type == "string" {
			to.Group = suggestedField{path + "." + field, defaultOf(s, known)}
			return to, true
		}
	}
	if s := object.Properties["apiVersion"]; s != nil && s.Type == "string" {
		to.APIVersion = &suggestedField{Path: path + ".apiVersion", Missing: defaultOf(s, "")}
		return to, true
	}
	// Without a field for the group, all kinds that the schema allows must be of one group.
	allowed := kindsOf(kind)
	for _, one := range []string{group, ""} {
		if len(allowed) > 0 && !slices.ContainsFunc(allowed, func(kind string) bool { return !types.has(one, kind) }) {
			to.Group = one
			return to, true
		}
	}
	to.Group = group
	return to, len(allowed) == 0 && known != ""
}

// kindsOf returns the kinds that the schema of a field allows or has as default.
func kindsOf(s *crd.Schema) (kinds []string) {
	for _, v := range append(slices.Clone(s.Enum), s.Default) {
		if kind, ok := v.(string); ok && kind != "" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// knownTypes are the types that references may lead to.
type knownTypes []*crd.Definition

// typesOfDefinitions returns the types of definitions and the built-in ones.
func typesOfDefinitions(definitions []*crd.Definition) knownTypes {
	known := slices.Clone(definitions)
	for _, t := range builtin.Types {
		known = append(known, &crd.Definition{Group: t.Group, Names: crd.Names{Plural: t.Plural, Kind: t.Kind}, Namespaced: t.Namespaced})
	}
	return known
}

// typesOfCatalog returns the types of a server, without versions, and the built-in ones.
func typesOfCatalog(catalog *discovery.Catalog) knownTypes {
	var served []*crd.Definition
	for _, r := range catalog.Resources() {
		if r.Preferred {
			names := crd.Names{Plural: r.GVR.Resource, Kind: r.GVK.Kind}
			served = append(served, &crd.Definition{Group: r.GVR.Group, Names: names, Namespaced: r.Scope == discovery.Namespaced})
		}
	}
	return typesOfDefinitions(served)
}

// definitions returns all types but one.
func (t knownTypes) definitions(but schema.GroupResource) []*crd.Definition {
	return slices.DeleteFunc(slices.Clone(t), func(d *crd.Definition) bool { return d.GroupResource() == but })
}

func (t knownTypes) has(group, kind string) bool { return t.kindNamed(group, kind) == kind }

// kindNamed returns the kind of a group that a field is named after: Issuer for issuer.
func (t knownTypes) kindNamed(group, base string) string {
	for _, d := range t {
		if d.Group == group && strings.EqualFold(d.Names.Kind, base) {
			return d.Names.Kind
		}
	}
	return ""
}

// defaultOf is what stands for a missing value: what the schema says, or something else unless that is empty.
func defaultOf(s *crd.Schema, otherwise string) *string {
	if text, ok := s.Default.(string); ok {
		return &text
	}
	if len(s.Enum) == 1 {
		if text, ok := s.Enum[0].(string); ok {
			return &text
		}
	}
	if otherwise == "" {
		return nil
	}
	return &otherwise
}
