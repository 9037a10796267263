package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
)

// The types of custom resources that configure crdcached.
var (
	configVersion  = schema.FromAPIVersionAndKind(indexers.APIVersion, indexers.Kind).GroupVersion()
	cachedTypesGVR = configVersion.WithResource("cachedtypes")
	indexConfigGVR = configVersion.WithResource("indexconfigs")
)

const cachedTypesKind = "CachedTypes"

// Reasons of an objectError.
const (
	reasonInvalid   = "Invalid"
	reasonConflict  = "Conflict"
	reasonForbidden = "Forbidden"
	reasonNotCached = "NotCached"
	reasonUnknown   = "RightsUnknown"
)

// objectError is an error in the status of a config object.
type objectError struct {
	// Field is the path of the field, such as spec.types[0].storage.mode.
	Field   string `json:"field"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// configObject is a custom resource, converted to the form of index configs. It is immutable.
type configObject struct {
	*unstructured.Unstructured
	// resources are the elements of spec.types or spec.resources; none if there are errors.
	resources []*indexers.Resource
	errors    []objectError
}

// parseObject converts a CachedTypes or an IndexConfig. It does not change the object.
func parseObject(source *unstructured.Unstructured) *configObject {
	o := &configObject{Unstructured: source}
	spec := source.Object["spec"]
	if o.GetKind() == cachedTypesKind {
		spec = map[string]any{"resources": withNames(spec)}
	}
	text, err := json.Marshal(map[string]any{"apiVersion": indexers.APIVersion, "kind": indexers.Kind,
		"metadata": map[string]any{"name": o.GetName()}, "spec": spec})
	if err != nil {
		o.fail("spec", reasonInvalid, "%v", err)
		return o
	}
	config, err := indexers.Parse(indexers.Source{Name: o.String(), Data: text})
	var invalid *indexers.ConfigError
	if errors.As(err, &invalid) {
		for _, d := range invalid.Diagnostics {
			message := strings.TrimSuffix(fmt.Sprintf("%s: %s; %s", d.Code, d.Message, d.Hint), "; ")
			o.fail(cmp.Or(o.elements(fieldAt(text, d)), "spec"), reasonInvalid, "%s", message)
		}
		return o
	}
	for i, r := range config.Resources {
		o.check(o.element(i), r)
	}
	if len(o.errors) == 0 {
		o.resources = config.Resources
	}
	return o
}

// withNames returns the elements of spec.types with names, which resources of an index config need.
func withNames(spec any) any {
	fields, _ := spec.(map[string]any)
	types, isList := fields["types"].([]any)
	if !isList {
		return fields["types"]
	}
	named := make([]any, len(types))
	for i, t := range types {
		named[i] = t
		if fields, ok := t.(map[string]any); ok {
			copied := map[string]any{"name": fmt.Sprintf("types.%d", i)}
			for name, value := range fields {
				copied[name] = value
			}
			named[i] = copied
		}
	}
	return named
}

// check reports settings of an element that are valid in a file, but that crdcached cannot serve.
func (o *configObject) check(field string, r *indexers.Resource) {
	if o.GetKind() != cachedTypesKind {
		if r.Match.Pattern() { // each type needs reviews of rights
			o.fail(field+".match", reasonInvalid, "an IndexConfig in a namespace cannot have a pattern: name one type")
		}
		for i, index := range r.Indexes {
			if err := checkIndexName(index.Name); err != nil {
				o.fail(fmt.Sprintf("%s.indexes[%d].name", field, i), reasonInvalid, "%v", err)
			}
		}
		return
	}
	if _, err := discovery.ParseName(typeNameOf(r.Match)); err != nil {
		o.fail(field+".match", reasonInvalid, "%v", err)
	}
	if mode := dynamicinformer.StorageMode(0); r.Storage.Mode != "" {
		if err := errors.Join(mode.UnmarshalText([]byte(r.Storage.Mode)), checkStorage(mode)); err != nil {
			o.fail(field+".storage.mode", reasonInvalid, "%v", err)
		}
	}
	switch n := r.Namespaces; {
	case n.All(), len(n.Include) == 1 && len(n.Exclude) == 0 && !strings.Contains(n.Include[0], "*"):
	default:
		o.fail(field+".namespaces", reasonInvalid, "crdcached can serve the objects of one namespace or of all: name one namespace in include")
	}
	if r.Selectors != (indexers.Selectors{}) {
		o.fail(field+".selectors", reasonInvalid, "crdcached serves all objects of a type: remove it")
	}
	if options, err := optionsOf(r); err != nil {
		o.fail(field, reasonInvalid, "%v", err)
	} else if err := options.Validate(); err != nil {
		o.fail(field, reasonInvalid, "%v", err)
	}
}

// optionsOf returns the informer options of an element of CachedTypes.
func optionsOf(r *indexers.Resource) (dynamicinformer.ResourceOptions, error) {
	options, err := bind.Options{Compression: compression}.ResourceOptions(r)
	options.Storage.CompressLists = options.Storage.Compression != nil
	return options, err
}

func (o *configObject) fail(field, reason, format string, args ...any) {
	o.errors = append(o.errors, objectError{field, reason, fmt.Sprintf(format, args...)})
}

// String returns the kind and the name.
func (o *configObject) String() string {
	if namespace := o.GetNamespace(); namespace != "" {
		return o.GetKind() + " " + namespace + "/" + o.GetName()
	}
	return o.GetKind() + " " + o.GetName()
}

// element returns the path of an element.
func (o *configObject) element(i int) string { return o.elements(fmt.Sprintf("spec.resources[%d]", i)) }

// elements replaces the name of the list in a path of the converted object.
func (o *configObject) elements(field string) string {
	if rest, ok := strings.CutPrefix(field, "spec.resources"); ok && o.GetKind() == cachedTypesKind {
		return "spec.types" + rest
	}
	return field
}

// fieldAt returns the path of the field at the position of a diagnostic.
func fieldAt(text []byte, d indexers.Diagnostic) (field string) {
	var document yaml.Node
	if yaml.Unmarshal(text, &document) != nil {
		return ""
	}
	var visit func(n *yaml.Node, path string)
	visit = func(n *yaml.Node, path string) {
		if n.Line > d.Line || n.Line == d.Line && n.Column > d.Column {
			return
		}
		field = path // the last field in the order of the text that begins before the position
		for i, child := range n.Content {
			switch {
			case n.Kind == yaml.SequenceNode:
				visit(child, fmt.Sprintf("%s[%d]", path, i))
			case n.Kind == yaml.MappingNode && i%2 == 1:
				visit(n.Content[i-1], path+"."+n.Content[i-1].Value)
				visit(child, path+"."+n.Content[i-1].Value)
			case n.Kind == yaml.DocumentNode:
				visit(child, path)
			}
		}
	}
	visit(&document, "")
	return strings.TrimPrefix(field, ".")
}

// sortByPrecedence sorts config objects by precedence: CachedTypes first, then the oldest, then by name.
func sortByPrecedence(objects []*configObject) {
	slices.SortFunc(objects, func(a, b *configObject) int {
		created := a.GetCreationTimestamp().Time
		return cmp.Or(strings.Compare(a.GetKind(), b.GetKind()),
			created.Compare(b.GetCreationTimestamp().Time),
			strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
}
