package cli

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/naming"
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

// builtinTargets are built-in kinds by the end of a field's name, without its suffix Ref or Name. The names
// after = are also the ends of other names.
var builtinTargets = []struct{ name, group, kind string }{
	{"secretkey", "", "Secret"}, {"secret", "", "Secret"}, {"pvc", "", "PersistentVolumeClaim"},
	{"volumeclaim", "", "PersistentVolumeClaim"},
	{"configmapkey", "", "ConfigMap"}, {"configmap", "", "ConfigMap"},
	{"serviceaccount", "", "ServiceAccount"}, {"service", "", "Service"},
	{"ingress", "networking.k8s.io", "Ingress"},
	{"persistentvolumeclaim", "", "PersistentVolumeClaim"}, {"persistentvolume", "", "PersistentVolume"},
	{"ingressclass", "networking.k8s.io", "IngressClass"}, {"storageclass", "storage.k8s.io", "StorageClass"},
	{"priorityclass", "scheduling.k8s.io", "PriorityClass"}, {"runtimeclass", "node.k8s.io", "RuntimeClass"},
	{"volumeattributesclass", "storage.k8s.io", "VolumeAttributesClass"},
	{"=node", "", "Node"}, {"=pod", "", "Pod"}, {"=pv", "", "PersistentVolume"},
	{"=hpa", "autoscaling", "HorizontalPodAutoscaler"},
	{"=horizontalpodautoscaler", "autoscaling", "HorizontalPodAutoscaler"},
}

type referenceFinder struct {
	self  target
	types targetTypes
	// isRemote means that the objects belong to a cluster of another object, as a Cluster API Machine does:
	// its nodes are in that cluster.
	isRemote bool
}

// proposeReferences returns a reference for each field with a known target type.
func proposeReferences(t servedType, targets targetTypes, fields []schemaField) []suggestedReference {
	finder := referenceFinder{self: target{t.Group, t.Names.Kind}, types: targets}
	finder.isRemote = slices.ContainsFunc(fields, func(f schemaField) bool {
		return f.path == ".spec.clusterName" && finder.ownKind("cluster") != (target{}) ||
			f.path == ".spec.destination.server"
	})
	var proposed []suggestedReference
	for _, f := range fields {
		// the subjects of RBAC are users and groups, too
		if isInConditions(f.path) || strings.Contains(f.path, "ownerReferences") || f.name == "subjects" ||
			finder.isRemote && strings.HasPrefix(f.name, "node") {
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
		to, ok = r.ofText(f, path)
	case name != nil && name.Type == "string":
		to, ok = r.ofObject(object, f, path)
	}
	return to, each, ok
}

// namedByKind are the kinds whose name alone ends the name of a text, without Name. The first three are also
// the whole name.
var namedByKind = []string{"PersistentVolumeClaim", "PersistentVolume", "Ingress", "Service",
	"ServiceAccount", "StorageClass", "Node"}

// secretName matches a text that is the name of a Secret. Others that end in Secret can be secret themselves.
var secretName = regexp.MustCompile("(?i)(pull|ca|crl|cert|certificate|tls|existing)secrets?$")

// ofText returns the target of a field such as secretName.
func (r referenceFinder) ofText(f schemaField, path string) (to suggestedTarget, ok bool) {
	base, isReference := referenceName(f.name)
	isName := isReference
	for _, suffix := range []string{"Name", "Names"} {
		if rest, ok := strings.CutSuffix(f.name, suffix); ok {
			base, isName = rest, true
		}
	}
	found, isList := r.ownKind(base), f.schema.Items != nil
	switch {
	case isReference:
		found = r.referredKind(base, false)
	case isName && base == "claim":
		found = target{"", "PersistentVolumeClaim"}
	case isName:
		inSpec, builtin := strings.HasPrefix(f.path, ".spec."), builtinTarget(base)
		if builtin.kind == "Service" && (base != "service" || inSpec) || builtin.kind == "Pod" && inSpec {
			builtin = target{} // these names are also those of hosts, products and traced programs
		}
		found = cmp.Or(found, builtin, r.customKind(base))
	case isList && wordsOf(base) == 1:
		found = r.onlyKind(base)
	case wordsOf(base) == 1 && base != "node" && !slices.Contains(namedByKind[:3], builtinTarget(base).kind):
		found = target{} // such as provider
	case found == (target{}):
		found = builtinTarget(base)
		isSecret := secretName.MatchString(f.name) || isList && strings.HasSuffix(base, "Secrets")
		if !slices.Contains(namedByKind, found.kind) && !isSecret {
			found = r.onlyKind(base)
		}
	}
	found = cmp.Or(found, r.describedKind(f.schema))
	result := suggestedTarget{Group: &found.group, Kind: &found.kind, NamePath: cmp.Or(path, "@")}
	return result, found != (target{})
}

// wordsOf returns the number of words of a name in camel case.
func wordsOf(name string) int { return 1 + len(capitals.FindAllString(name, -1)) }

var capitals = regexp.MustCompile("[A-Z]")

type target struct{ group, kind string }

func builtinTarget(base string) target {
	for _, t := range builtinTargets {
		name, isWhole := strings.CutPrefix(t.name, "=")
		if isNamed(base, name) || !isWhole && endsIn(base, name) {
			return target{t.group, t.kind}
		}
	}
	if strings.Contains(strings.ToLower(base), "configmap") {
		return target{"", "ConfigMap"}
	}
	return target{}
}

// ownKind returns the type of the own group, of a group that it extends, or of another group of the same
// owner, after which a field is named. The name can have further words before a kind of two words or more.
func (r referenceFinder) ownKind(base string) (found target) {
	for group := r.self.group; strings.Contains(group, "."); _, group, _ = strings.Cut(group, ".") {
		for _, d := range r.types {
			kind := d.Names.Kind
			switch {
			case d.Group != group:
			case isNamed(base, kind):
				return target{group, kind}
			case wordsOf(kind) > 2 && strings.HasSuffix(base, kind) && len(kind) > len(found.kind):
				found = target{group, kind}
			}
		}
	}
	return cmp.Or(found, r.only(func(t target) bool {
		return isNamed(base, t.kind) && domain.FindString(t.group) == domain.FindString(r.self.group)
	}))
}

// domain matches the end of a group that belongs to one owner.
var domain = regexp.MustCompile(`([^.]+\.)?[^.]*k8s\.io$|[^.]+\.[^.]+$`)

// namedKind returns the type after which a field is named: an own one before a built-in one and others.
func (r referenceFinder) namedKind(base string) target {
	return cmp.Or(r.ownKind(base), builtinTarget(base), r.customKind(base))
}

// referredKind returns the type to which a field such as issuerRef refers.
func (r referenceFinder) referredKind(base string, isKeySelector bool) target {
	found := cmp.Or(r.namedKind(base), r.onlyKind(base))
	if found == (target{}) && (isKeySelector || holdsSecret(base)) {
		return target{"", "Secret"}
	}
	return found
}

// holdsSecret reports whether the name of a field names the content of a Secret.
func holdsSecret(base string) bool { return endsIn(base, "credential") || endsIn(base, "certificate") }

// onlyKind returns the type in the group of r.self whose kind ends in a word, unless there are several.
func (r referenceFinder) onlyKind(word string) target {
	return r.only(func(t target) bool {
		return t.group == r.self.group && (endsIn(t.kind, word) || endsIn(naming.GuessPlural(t.kind), word))
	})
}

// customKind returns the type after which a field is named, if only one group has such a kind.
func (r referenceFinder) customKind(base string) target {
	return r.only(func(t target) bool { return wordsOf(t.kind) > 2 && isNamed(base, t.kind) })
}

// only returns the type that selects accepts, unless there are several.
func (r referenceFinder) only(selects func(target) bool) (found target) {
	for _, d := range r.types {
		switch t := (target{d.Group, d.Names.Kind}); {
		case t == found || !selects(t):
		case found != (target{}):
			return target{}
		default:
			found = t
		}
	}
	return found
}

// isNamed reports whether a field has the name of a kind, or its plural.
func isNamed(field, kind string) bool {
	return strings.EqualFold(field, kind) || strings.EqualFold(field, naming.GuessPlural(kind))
}

// endsIn reports whether a name ends in a word of any case, or its plural.
func endsIn(name, word string) bool {
	lowerName := strings.ToLower(name)
	return word != "" && (strings.HasSuffix(lowerName, strings.ToLower(word)) ||
		strings.HasSuffix(lowerName, naming.GuessPlural(word)))
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
func (r referenceFinder) ofObject(object *crd.Schema, f schemaField, path string) (suggestedTarget, bool) {
	base, isReference := referenceName(f.name)
	base = strings.TrimSuffix(base, "To")
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
	found, isOnlyName := target{}, len(object.Properties) == 1
	switch isKeySelector := isText("key"); {
	case isReference && base == "parent", base == "dependsOn":
		found = r.self
	case isReference:
		found = r.referredKind(base, isKeySelector)
	case hasOnly(object, "name", "key", "namespace", "optional"):
		found = r.namedKind(base)
		if found == (target{}) && (isKeySelector || holdsSecret(base)) {
			found = target{"", "Secret"}
		}
		if isOnlyName && found != r.ownKind(base) && found.kind != "Secret" && found.kind != "ConfigMap" {
			found = target{} // the name of an object to create
		}
	case isText("namespace"), strings.EqualFold(base, "secret"), strings.EqualFold(base, "configMap"):
		found = r.namedKind(base)
	case isNamed(base, "Service") && object.Properties["port"] != nil:
		found = target{"", "Service"}
	case wordsOf(base) > 1 && !endsIn(base, "class") && object.Properties["metadata"] == nil &&
		object.Properties["spec"] == nil:
		found = r.customKind(base)
	}
	found = cmp.Or(found, r.describedKind(object.Properties["name"]))
	to.Group, to.Kind = &found.group, &found.kind
	return to, found != (target{})
}

// describedKind returns the type whose kind is in the description of a name.
func (r referenceFinder) describedKind(name *crd.Schema) target {
	word := name.NameOf
	if strings.EqualFold(word, "secret") || strings.EqualFold(word, "configMap") {
		return builtinTarget(word)
	}
	return r.only(func(t target) bool { return t.kind == word && t.group == r.self.group && t != r.self })
}

// isObjectReference reports whether an object has the fields of a reference to any type, and no other ones.
func isObjectReference(object *crd.Schema) bool {
	p := object.Properties
	return p["apiVersion"] != nil && p["metadata"] == nil && p["spec"] == nil ||
		(p["apiGroup"] != nil || p["group"] != nil) &&
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
	to.Group = &r.self.group
	return to, len(kindsOf(kind)) == 0 && slices.ContainsFunc(r.types, func(d *crd.Definition) bool {
		return d.Group == r.self.group && endsIn(d.Names.Kind, base)
	})
}

// groupOfKinds returns the group of all kinds that a field allows, or nil.
func (r referenceFinder) groupOfKinds(kind *crd.Schema) *string {
	allowed := kindsOf(kind)
	for _, group := range []string{r.self.group, ""} {
		isOther := func(kind string) bool {
			return !slices.ContainsFunc(r.types,
				func(d *crd.Definition) bool { return d.Group == group && d.Names.Kind == kind })
		}
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
