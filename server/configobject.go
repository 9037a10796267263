package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	reasonInvalid       = "Invalid"
	reasonConflict      = "Conflict"
	reasonForbidden     = "Forbidden"
	reasonNotCached     = "NotCached"
	reasonRightsUnknown = "RightsUnknown"
)

// objectError is an error in the status of a config object.
type objectError struct {
	// Field is a path such as spec.types[0].storage.mode.
	Field   string `json:"field"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// configObject is a CachedTypes or an IndexConfig, converted to the resources of an index config. It is
// immutable.
type configObject struct {
	*unstructured.Unstructured
	// resources are the elements of spec.types or spec.resources. It is empty if there are errors.
	resources []*indexers.Resource
	errors    []objectError
}

// parseObject converts a CachedTypes or an IndexConfig. It does not change the object.
func parseObject(source *unstructured.Unstructured) *configObject {
	o := &configObject{Unstructured: source}
	spec := source.Object["spec"]
	if o.GetKind() == cachedTypesKind {
		spec = map[string]any{"resources": nameElements(spec)}
	}
	text, err := json.Marshal(map[string]any{"apiVersion": indexers.APIVersion, "kind": indexers.Kind,
		"metadata": map[string]any{"name": o.GetName()}, "spec": spec})
	if err != nil {
		o.addError("spec", reasonInvalid, "%v", err)
		return o
	}
	config, err := indexers.Parse(indexers.Source{Name: o.String(), Data: text})
	var configErr *indexers.ConfigError
	if errors.As(err, &configErr) {
		for _, d := range configErr.Diagnostics {
			message := strings.TrimSuffix(fmt.Sprintf("%s: %s; %s", d.Code, d.Message, d.Hint), "; ")
			o.addError(cmp.Or(o.convertedPath(pathAt(text, d)), "spec"), reasonInvalid, "%s", message)
		}
		return o
	}
	for i, r := range config.Resources {
		o.validateElement(o.elementPath(i), r)
	}
	if len(o.errors) == 0 {
		o.resources = config.Resources
	}
	return o
}

// nameElements adds names to the elements of spec.types, because resources of an index config need a name.
func nameElements(spec any) any {
	fields, _ := spec.(map[string]any)
	types, isList := fields["types"].([]any)
	if !isList {
		return fields["types"]
	}
	named := make([]any, len(types))
	for i, t := range types {
		named[i] = t
		if fields, ok := t.(map[string]any); ok {
			element := map[string]any{"name": fmt.Sprintf("types.%d", i)}
			maps.Copy(element, fields)
			named[i] = element
		}
	}
	return named
}

// validateElement adds errors for settings that are valid in a file but that crdcached cannot serve.
func (o *configObject) validateElement(field string, r *indexers.Resource) {
	if o.GetKind() != cachedTypesKind {
		if r.Match.Pattern() { // each type needs reviews of rights
			o.addError(field+".match", reasonInvalid,
				"an IndexConfig in a namespace cannot have a pattern: name one type")
		}
		for i, index := range r.Indexes {
			if err := validateIndexName(index.Name); err != nil {
				o.addError(fmt.Sprintf("%s.indexes[%d].name", field, i), reasonInvalid, "%v", err)
			}
		}
		return
	}
	if _, err := discovery.ParseName(matchTypeName(r.Match)); err != nil {
		o.addError(field+".match", reasonInvalid, "%v", err)
	}
	if mode := dynamicinformer.StorageMode(0); r.Storage.Mode != "" {
		if err := errors.Join(mode.UnmarshalText([]byte(r.Storage.Mode)), validateStorage(mode)); err != nil {
			o.addError(field+".storage.mode", reasonInvalid, "%v", err)
		}
	}
	switch n := r.Namespaces; {
	case n.All(), len(n.Include) == 1 && len(n.Exclude) == 0 && !strings.Contains(n.Include[0], "*"):
	default:
		o.addError(field+".namespaces", reasonInvalid,
			"crdcached can serve the objects of one namespace or of all: name one namespace in include")
	}
	if r.Selectors != (indexers.Selectors{}) {
		o.addError(field+".selectors", reasonInvalid, "crdcached serves all objects of a type: remove it")
	}
	if options, err := informerOptions(r); err != nil {
		o.addError(field, reasonInvalid, "%v", err)
	} else if err := options.Validate(); err != nil {
		o.addError(field, reasonInvalid, "%v", err)
	}
}

func informerOptions(r *indexers.Resource) (dynamicinformer.ResourceOptions, error) {
	options, err := bind.Options{Compression: compression}.ResourceOptions(r)
	options.Storage.CompressLists = options.Storage.Compression != nil
	return options, err
}

func (o *configObject) addError(field, reason, format string, args ...any) {
	o.errors = append(o.errors, objectError{field, reason, fmt.Sprintf(format, args...)})
}

// String returns the kind and the name.
func (o *configObject) String() string {
	if namespace := o.GetNamespace(); namespace != "" {
		return o.GetKind() + " " + namespace + "/" + o.GetName()
	}
	return o.GetKind() + " " + o.GetName()
}

func (o *configObject) elementPath(i int) string {
	return o.convertedPath(fmt.Sprintf("spec.resources[%d]", i))
}

// convertedPath converts a path of the index config to a path of the custom resource.
func (o *configObject) convertedPath(field string) string {
	if rest, ok := strings.CutPrefix(field, "spec.resources"); ok && o.GetKind() == cachedTypesKind {
		return "spec.types" + rest
	}
	return field
}

func pathAt(text []byte, d indexers.Diagnostic) (field string) {
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
