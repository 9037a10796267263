package session

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/internal/naming"
)

// Declared returns Settings with the resource as the schema of the type completes it.
func (r *Reader) Declared(typ discovery.Resource) (declared *indexers.Resource,
	options dynamicinformer.ResourceOptions, err error) {
	if declared, options, err = r.Settings(typ); err != nil {
		return nil, options, err
	}
	declared, problems := declared.WithSchema(func() (*crd.Schema, error) { return r.schemaOf(typ) })
	return declared, options, errors.Join(problems...)
}

// Settings returns the resource of the config for a type, and the informer options of the config, the
// namespace and the flags. If resources of the type have different settings, the one that an argument names
// applies.
func (r *Reader) Settings(typ discovery.Resource) (declared *indexers.Resource,
	options dynamicinformer.ResourceOptions, err error) {
	settings := bind.Settings{Config: r.Config.Config, Namespace: r.Namespace}
	if r.allNamespaces {
		settings.Namespace = ""
	}
	if declared, err = settings.ResourceOf(typ); err != nil {
		names := naming.Map(r.args, func(arg string) []string { return strings.Split(arg, ",") })
		named, namedErr := settings.ResourceOf(typ, slices.Concat(names...)...)
		if namedErr != nil || named.Name == "" {
			return nil, options, fmt.Errorf("%w; name one resource of the config, or use --namespace or -A", err)
		}
		declared = named
	}
	options, err = bind.Options{Compression: s2.New()}.ResourceOptions(declared)
	if err != nil {
		return nil, options, err
	}
	if r.WholeObjects {
		options.Keep, options.Prune = dynamicinformer.Keep{}, dynamicinformer.Prune{}
	}
	r.addFlags(&options)
	return declared, options, nil
}

// CacheOptions returns the options of Declared with the indexes.
func (r *Reader) CacheOptions(typ discovery.Resource) (dynamicinformer.ResourceOptions, error) {
	declared, options, err := r.Declared(typ)
	if err == nil && len(declared.Indexes) > 0 {
		options.Indexes = indexers.CompileIndexes(declared.Indexes...)
	}
	return options, err
}

// WithoutSelectors returns a reader that ignores the selectors of the flags.
func (r *Reader) WithoutSelectors() *Reader {
	reader := *r
	reader.informerOptions.LabelSelector, reader.informerOptions.FieldSelector = nil, nil
	return &reader
}

// InAllNamespaces returns a reader whose Settings ignore the namespace of the flags.
func (r *Reader) InAllNamespaces() *Reader {
	reader := *r
	reader.allNamespaces = true
	return &reader
}

// Narrow restricts a query of a shared cache to the namespace and the label selector of the flags.
func (r *Reader) Narrow(q query.Query, typ discovery.Resource) query.Query {
	if namespace := r.NamespaceFor(typ); namespace != "" {
		q = query.Narrow(q, query.Namespace(namespace))
	}
	if selector := r.informerOptions.LabelSelector; selector != nil {
		q = query.Narrow(q, query.Selector(selector))
	}
	return q
}

// addFlags adds the options of the flags to the config's options.
func (r *Reader) addFlags(options *dynamicinformer.ResourceOptions) {
	flags := r.informerOptions
	if flags.LabelSelector != nil {
		requirements, _ := flags.LabelSelector.Requirements()
		options.LabelSelector = cmp.Or(options.LabelSelector, labels.Everything()).Add(requirements...)
	}
	if flags.FieldSelector != nil {
		options.FieldSelector = fields.AndSelectors(cmp.Or(options.FieldSelector, fields.Everything()),
			flags.FieldSelector)
	}
	if flags.Storage.Mode != 0 {
		options.Storage = flags.Storage
	}
	if !reflect.ValueOf(options.Keep).IsZero() {
		return // managedFields are dropped unless they are declared
	}
	options.Prune.Presets = naming.AppendMissing(options.Prune.Presets, flags.Prune.Presets...)
}

// listOptions returns the selectors of a type for lists, and for the namespaces of objects.
func (r *Reader) listOptions(typ discovery.Resource) (list metav1.ListOptions,
	selects func(namespace string) bool, err error) {
	declared, options, err := r.Settings(typ)
	if err != nil {
		return list, nil, err
	}
	if options.LabelSelector != nil {
		list.LabelSelector = options.LabelSelector.String()
	}
	if options.FieldSelector != nil {
		list.FieldSelector = options.FieldSelector.String()
	}
	return list, declared.Namespaces.Matches, nil
}

// AddToGraph adds caches with the options of a reader to a graph.
func AddToGraph(graph *references.Graph, reader *Reader, caches ...Cache) error {
	return naming.Each(caches, func(cached Cache) error {
		declared, options, err := reader.Settings(cached.Resource)
		if err == nil {
			_, err = graph.Add(references.InformerSource{
				Type: ReferenceType(cached.Resource), References: declared.References,
				Informer:    cached.Informer,
				HasSelector: options.LabelSelector != nil || options.FieldSelector != nil,
				Namespaces:  declared.Namespaces.Matches,
			})
		}
		return err
	})
}

func ReferenceType(r discovery.Resource) references.Type {
	return references.Type{Group: r.GVR.Group, Resource: r.GVR.Resource, Kind: r.GVK.Kind,
		Namespaced: r.Scope == discovery.Namespaced}
}

// FindType returns the preferred version of a type with the group and the kind or resource.
func FindType(catalog *discovery.Catalog, t references.Type) (found discovery.Resource, ok bool) {
	for _, r := range catalog.Resources() {
		isNamed := t.Kind != "" && r.GVK.Kind == t.Kind || t.Kind == "" && r.GVR.Resource == t.Resource
		if r.GVR.Group == t.Group && isNamed && r.HasVerbs("list") && (!ok || r.Preferred) {
			found, ok = r, true
		}
	}
	return found, ok
}
