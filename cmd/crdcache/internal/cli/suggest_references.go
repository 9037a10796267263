package cli

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
)

type suggestedReference struct {
	Name string          `yaml:"name"`
	Each string          `yaml:"each,omitempty"`
	To   suggestedTarget `yaml:"to"`
}

// suggestedTarget is the target of a reference. Group and Kind are nil if there is no safe default for the
// path: a guess would create invalid references.
type suggestedTarget struct {
	Group          *string `yaml:"group,omitempty"`
	GroupPath      string  `yaml:"groupPath,omitempty"`
	APIVersionPath string  `yaml:"apiVersionPath,omitempty"`
	Kind           *string `yaml:"kind,omitempty"`
	KindPath       string  `yaml:"kindPath,omitempty"`
	NamePath       string  `yaml:"namePath"`
	NamespacePath  string  `yaml:"namespacePath,omitempty"`
}

// builtinTargets are built-in kinds by the end of a field's name, without its suffix Ref or Name.
var builtinTargets = []struct{ suffix, group, kind string }{
	{"secretkey", "", "Secret"}, {"secret", "", "Secret"},
	{"configmapkey", "", "ConfigMap"}, {"configmap", "", "ConfigMap"},
	{"serviceaccount", "", "ServiceAccount"}, {"service", "", "Service"}, {"ingress", "networking.k8s.io", "Ingress"},
	{"persistentvolumeclaim", "", "PersistentVolumeClaim"}, {"persistentvolume", "", "PersistentVolume"},
	{"ingressclass", "networking.k8s.io", "IngressClass"}, {"storageclass", "storage.k8s.io", "StorageClass"},
	{"priorityclass", "scheduling.k8s.io", "PriorityClass"}, {"runtimeclass", "node.k8s.io", "RuntimeClass"},
	{"volumeattributesclass", "storage.k8s.io", "VolumeAttributesClass"},
}

// referenceFinder finds the references of one type.
type referenceFinder struct {
	group string
	types targetTypes
	// isRemote means that the objects belong to a cluster of another object, as a Cluster API Machine does:
	// its nodes are in that cluster.
	isRemote bool
}

// proposeReferences returns a reference for each field with a known target type.
func proposeReferences(group string, targets targetTypes, fields []schemaField) []suggestedReference {
	finder := referenceFinder{group: group, types: targets}
	finder.isRemote = slices.ContainsFunc(fields, func(f schemaField) bool {
		return f.path == ".spec.clusterName" && finder.ownKind("cluster") != (target{}) ||
			f.path == ".spec.destination.server"
	})
	var proposed []suggestedReference
	for _, f := range fields {
		// the subjects of RBAC are users and groups, too
		if isInConditions(f.path) || strings.Contains(f.path, "ownerReferences") || f.name == "subjects" {
			continue
		}
		if to, each, ok := finder.find(f); ok {
			proposed = append(proposed, suggestedReference{Name: f.path, Each: each, To: to})
		}
	}
	return proposed
}

// find returns the target of a field, and the path of the elements if it is in a list.
func (r referenceFinder) find(f schemaField) (to suggestedTarget, each string, ok bool) {
	object, path := f.schema, f.path
	if object.Items != nil {
		object, path, each = object.Items, "", f.path+"[*]"
	} else if f.lists > 0 {
		end := strings.LastIndex(f.path, "[*]") + len("[*]")
		path, each = f.path[end:], f.path[:end]
	}
	name := object.Properties["name"]
	switch {
	case object.Type == "string" && len(object.Enum) == 0 && object.Format == "":
		to, ok = r.ofText(f.name, path, strings.HasPrefix(f.path, ".spec."))
	case name != nil && name.Type == "string":
		to, ok = r.ofObject(object, f.name, path)
	}
	return to, each, ok
}

// namedByKind are the kinds whose name alone ends the name of a text, without Name.
var namedByKind = []string{"Service", "Ingress", "StorageClass", "Node"}

// isSecretName reports whether a text that ends in Secret is the name of a Secret. Others can be
// secret themselves.
func isSecretName(text string) bool {
	lowerText := strings.TrimSuffix(strings.ToLower(text), "s")
	return slices.ContainsFunc([]string{"pull", "ca", "crl", "cert", "certificate", "tls"},
		func(use string) bool { return strings.HasSuffix(lowerText, use+"secret") })
}

// ofText returns the target of a field such as secretName.
func (r referenceFinder) ofText(name, path string, inSpec bool) (suggestedTarget, bool) {
	base, isName := strings.CutSuffix(name, "Name")
	if !isName {
		base, isName = strings.CutSuffix(name, "Names")
	}
	found := r.ownKind(base)
	switch {
	case isName && found == (target{}):
		if found = builtinTarget(base); base == "claim" {
			found = target{"", "PersistentVolumeClaim"}
		} else if found.kind == "Service" && (base != "service" || inSpec) || found.kind == "Pod" {
			found = target{} // these names are also those of hosts, products and traced programs
		}
	case isName:
	case wordsOf(name) < 2 && name != "node": // such as provider
		found = target{}
	case found == (target{}):
		if found = r.onlyKind(base); found == (target{}) {
			found = builtinTarget(base)
			if !slices.Contains(namedByKind, found.kind) && !isSecretName(name) {
				return suggestedTarget{}, false
			}
		}
	}
	if path == "" {
		path = "@"
	}
	return suggestedTarget{Group: &found.group, Kind: &found.kind, NamePath: path},
		found != (target{}) && !(r.isRemote && found.kind == "Node")
}

// wordsOf returns the number of words of a name in camel case.
func wordsOf(name string) int {
	return 1 + len(name) - len(strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' {
			return -1
		}
		return c
	}, name))
}

// target is a type.
type target struct{ group, kind string }

func builtinTarget(base string) target {
	lowerName := strings.ToLower(base)
	for _, t := range builtinTargets {
		if strings.HasSuffix(lowerName, t.suffix) {
			return target{t.group, t.kind}
		}
	}
	switch { // short names are also the ends of names of other types
	case lowerName == "node", lowerName == "pod":
		return target{"", strings.ToUpper(lowerName[:1]) + lowerName[1:]}
	case lowerName == "hpa", lowerName == "horizontalpodautoscaler":
		return target{"autoscaling", "HorizontalPodAutoscaler"}
	case strings.Contains(lowerName, "configmap"):
		return target{"", "ConfigMap"}
	}
	return target{}
}

// ownKind returns the type of the own group, or of a group that it extends, after which a field is named. The
// name can have further words before a kind of two words or more.
func (r referenceFinder) ownKind(base string) (found target) {
	for group := r.group; strings.Contains(group, "."); _, group, _ = strings.Cut(group, ".") {
		for _, d := range r.types {
			kind := d.Names.Kind
			switch {
			case d.Group != group:
			case strings.EqualFold(kind, base) || strings.EqualFold(d.Names.Plural, base):
				return target{group, kind}
			case wordsOf(kind) > 2 && strings.HasSuffix(base, kind) && len(kind) > len(found.kind):
				found = target{group, kind}
			}
		}
	}
	return found
}

// namedKind returns the type after which a field is named: an own one before a built-in one.
func (r referenceFinder) namedKind(base string) target {
	if found := r.ownKind(base); found != (target{}) {
		return found
	}
	return builtinTarget(base)
}

// onlyKind returns the type of the own group whose kind ends in a word, if there is only one.
func (r referenceFinder) onlyKind(word string) (found target) {
	for _, d := range r.types {
		if d.Group != r.group || !endsIn(d.Names.Kind, word) {
			continue
		}
		if found != (target{}) && found.kind != d.Names.Kind {
			return target{}
		}
		found = target{d.Group, d.Names.Kind}
	}
	return found
}

// endsIn reports whether a kind ends in a word of any case.
func endsIn(kind, word string) bool {
	return word != "" && strings.HasSuffix(strings.ToLower(kind), strings.ToLower(word))
}

// referenceName returns the name of a reference field without its suffix, or false for other fields.
func referenceName(name string) (string, bool) {
	for _, suffix := range []string{"References", "Reference", "Refs", "Ref"} {
		if base, ok := strings.CutSuffix(name, suffix); ok {
			return base, true
		}
	}
	return name, strings.EqualFold(name, "ref") || strings.EqualFold(name, "refs")
}

// ofObject returns the target of a field such as issuerRef, or false if the schema does not determine its
// type.
func (r referenceFinder) ofObject(object *crd.Schema, name, path string) (suggestedTarget, bool) {
	base, isReference := referenceName(name)
	if r.isRemote && strings.EqualFold(base, "node") {
		return suggestedTarget{}, false
	}
	isText := func(field string) bool {
		s := object.Properties[field]
		return s != nil && s.Type == "string"
	}
	to := suggestedTarget{NamePath: path + ".name"}
	if isText("namespace") {
		to.NamespacePath = path + ".namespace"
	}
	for _, field := range []string{"kind", "type"} {
		isOpen := field == "kind" && (isReference || isObjectReference(object) && !r.isRemote)
		if isText(field) && (isOpen || r.groupOfKinds(object.Properties[field]) != nil) {
			return r.withKind(to, object, path, base, field)
		}
	}
	if isText("kind") {
		return to, false
	}
	found := target{}
	switch isKeySelector := isText("key"); {
	case isReference:
		if found = r.namedKind(base); found == (target{}) {
			found = r.onlyKind(base)
		}
		if found == (target{}) && (isKeySelector || strings.HasSuffix(strings.ToLower(base), "credentials")) {
			found = target{"", "Secret"}
		}
	case hasOnly(object, "name", "key", "namespace", "optional"):
		if found = r.namedKind(strings.TrimSuffix(name, "s")); found == (target{}) && isKeySelector {
			found = target{"", "Secret"} // a key of a Secret
		}
		if len(object.Properties) == 1 && found.kind != "Secret" && found.kind != "ConfigMap" {
			found = target{} // the name of an object to create
		}
	case isText("namespace") || strings.EqualFold(name, "secret") || strings.EqualFold(name, "configMap"):
		found = r.namedKind(name)
	}
	to.Group, to.Kind = &found.group, &found.kind
	return to, found != (target{})
}

// isObjectReference reports whether an object has the fields of a reference to any type, and no other ones.
func isObjectReference(object *crd.Schema) bool {
	p := object.Properties
	return (p["apiVersion"] != nil || p["apiGroup"] != nil || p["group"] != nil) &&
		hasOnly(object, "apiVersion", "apiGroup", "group", "kind", "name", "namespace", "uid", "fieldPath",
			"resourceVersion")
}

func hasOnly(object *crd.Schema, fields ...string) bool {
	for name := range object.Properties {
		if !slices.Contains(fields, name) {
			return false
		}
	}
	return true
}

// withKind completes the target of a reference with a field for the kind.
func (r referenceFinder) withKind(to suggestedTarget, object *crd.Schema,
	path, base, field string) (suggestedTarget, bool) {
	named, kind := r.ownKind(base), object.Properties[field]
	to.KindPath, to.Kind = path+"."+field, defaultValueOf(kind, named.kind)
	for _, field := range []string{"group", "apiGroup"} {
		if s := object.Properties[field]; s != nil && s.Type == "string" {
			// the only guess: issuerRef without a group, in a group with a kind Issuer
			to.GroupPath, to.Group = path+"."+field, defaultValueOf(s, named.group)
			return to, true
		}
	}
	if s := object.Properties["apiVersion"]; s != nil && s.Type == "string" {
		to.APIVersionPath = path + ".apiVersion"
		if apiVersion := defaultValueOf(s, ""); apiVersion != nil {
			to.Group = new(schema.FromAPIVersionAndKind(*apiVersion, "").Group)
		}
		return to, true
	}
	if to.Group = r.groupOfKinds(kind); to.Group != nil {
		return to, true
	}
	// the kind is one of several in the own group that end in the name of the field
	to.Group = &r.group
	return to, len(kindsOf(kind)) == 0 && slices.ContainsFunc(r.types, func(d *crd.Definition) bool {
		return d.Group == r.group && endsIn(d.Names.Kind, base)
	})
}

// groupOfKinds returns the group of all kinds that a field allows, or nil.
func (r referenceFinder) groupOfKinds(kind *crd.Schema) *string {
	allowed := kindsOf(kind)
	for _, group := range []string{r.group, ""} {
		isOther := func(kind string) bool { return !r.types.has(group, kind) }
		if len(allowed) > 0 && !slices.ContainsFunc(allowed, isOther) {
			return &group
		}
	}
	return nil
}

// kindsOf returns the kinds in the enum and the default of a field.
func kindsOf(s *crd.Schema) (kinds []string) {
	for _, v := range append(slices.Clone(s.Enum), s.Default) {
		if kind, ok := v.(string); ok && kind != "" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
