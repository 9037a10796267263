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
)

// Declared returns the resource of the config for a type, and the informer options of the config, the
// namespace and the flags. If resources of the type have different settings, the one that an argument names
// applies.
func (r *Reader) Declared(typ discovery.Resource) (declared *indexers.Resource,
	options dynamicinformer.ResourceOptions, err error) {
	settings := bind.Settings{Config: r.Config.Config, Namespace: r.Namespace}
	if declared, err = settings.ResourceOf(typ); err != nil {
		var names []string
		for _, arg := range r.args {
			names = append(names, strings.Split(arg, ",")...)
		}
		named, namedErr := settings.ResourceOf(typ, names...)
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
	declared, problems := declared.WithSchema(func() (*crd.Schema, error) { return r.schemaOf(typ) })
	return declared, options, errors.Join(problems...)
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
	for _, preset := range flags.Prune.Presets {
		if !slices.Contains(options.Prune.Presets, preset) {
			options.Prune.Presets = append(options.Prune.Presets, preset)
		}
	}
}

// listOptions returns the selectors of a type for lists, and for the namespaces of objects.
func (r *Reader) listOptions(typ discovery.Resource) (list metav1.ListOptions,
	selects func(namespace string) bool, err error) {
	declared, options, err := r.Declared(typ)
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
