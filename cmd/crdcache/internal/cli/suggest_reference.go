package cli

import (
	"slices"
	"strings"

	"github.com/crdcache/crdcache/discovery/crd"
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
// whose name says which object is meant. kinds are those that are known of the group.
func proposeReferences(group string, kinds []string, fields []schemaField) []suggestedReference {
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
		if to, ok := targetOf(object, path, base, group, kinds); ok {
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

// targetOf says what an object with a name refers to; false when nobody can tell which type that is.
func targetOf(object *crd.Schema, path, base, group string, kinds []string) (suggestedTarget, bool) {
	to := suggestedTarget{Name: path + ".name"}
	if s := object.Properties["namespace"]; s != nil && s.Type == "string" {
		to.Namespace = path + ".namespace"
	}
	known := kindNamed(base, kinds)
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
	to.Group = group
	return to, true
}

// kindNamed gives the kind that a field is named after: Issuer for issuer.
func kindNamed(base string, kinds []string) string {
	i := slices.IndexFunc(kinds, func(kind string) bool { return strings.EqualFold(kind, base) })
	if i < 0 {
		return ""
	}
	return kinds[i]
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
