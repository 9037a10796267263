package controllerruntime

import (
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// found is an object that a list is to have, as it is stored.
type found struct {
	stored any
	// shared says that readers of its view get shared objects.
	shared bool
}

// find returns what options select of some views, as it is stored: nothing is decoded.
func (r *resource) find(views []*view, options client.ListOptions) ([]found, error) {
	var all []found
	for _, v := range views {
		yield := func(_ string, stored any) bool {
			if options.LabelSelector == nil || matches(options.LabelSelector, stored) {
				all = append(all, found{stored, v.shares})
			}
			return options.Limit <= 0 || int64(len(all)) < options.Limit
		}
		if err := r.search(v, options, &all, yield); err != nil {
			return nil, err
		}
		if options.Limit > 0 && int64(len(all)) >= options.Limit {
			break
		}
	}
	return all, nil
}

// search yields the objects of a view in the namespace of the options and with the values of their field
// selector.
func (r *resource) search(v *view, options client.ListOptions, all *[]found,
	yield func(string, any) bool) error {
	content := v.informer().Snapshot()
	if options.FieldSelector != nil {
		wanted, err := r.lookups(content, options.FieldSelector)
		if err != nil {
			return err
		}
		searchIndexes(wanted, content, options.Namespace, yield)
		return nil
	}
	if options.Namespace != "" {
		if byNamespace, ok := content.Index(toolscache.NamespaceIndex); ok {
			*all = sized(*all, byNamespace.Count(options.Namespace), options)
			byNamespace.Objects(options.Namespace, yield)
			return nil
		}
	}
	*all = sized(*all, content.Len(), options)
	content.AllStored(yield)
	return nil
}

// sized makes room where it is known how many objects there will be.
func sized(all []found, more int, options client.ListOptions) []found {
	if options.LabelSelector != nil || options.Limit > 0 || len(all) > 0 {
		return all
	}
	return make([]found, 0, more)
}

// lookup is one value that objects must have in one index.
type lookup struct {
	index dynamicinformer.SnapshotIndex
	value string
}

// lookups returns what a field selector means.
func (r *resource) lookups(content *dynamicinformer.Snapshot, selector fields.Selector) ([]lookup, error) {
	var all []lookup
	for _, required := range selector.Requirements() {
		if required.Operator != selection.Equals && required.Operator != selection.DoubleEquals {
			return nil, errInexact
		}
		name, value, err := r.indexes.find(required.Field, required.Value)
		if err != nil {
			return nil, err
		}
		index, ok := content.Index(name)
		if !ok {
			return nil, errNoIndex(required.Field)
		}
		all = append(all, lookup{index, value})
	}
	if len(all) == 0 {
		return nil, errInexact
	}
	return all, nil
}

var errInexact = errors.New("non-exact field matches are not supported by the cache")

// searchIndexes yields the objects that have all values, in a namespace or all. It walks the shortest of the
// lists.
func searchIndexes(wanted []lookup, content *dynamicinformer.Snapshot, namespace string,
	yield func(string, any) bool) {
	shortest := 0
	for k := range wanted {
		if wanted[k].index.Count(wanted[k].value) < wanted[shortest].index.Count(wanted[shortest].value) {
			shortest = k
		}
	}
	walk := wanted[shortest]
	if namespace != "" {
		if by, ok := content.Index(toolscache.NamespaceIndex); ok &&
			by.Count(namespace) < walk.index.Count(walk.value) {
			walk = lookup{by, namespace}
		}
	}
	walk.index.Objects(walk.value, func(key string, stored any) bool {
		if namespace != "" && !(strings.HasPrefix(key, namespace) && len(key) > len(namespace) &&
			key[len(namespace)] == '/') {
			return true
		}
		for _, w := range wanted {
			if w != walk && !w.index.Has(w.value, key) {
				return true
			}
		}
		return yield(key, stored)
	})
}

// matches compares labels without decoding what is packed.
func matches(selector labels.Selector, stored any) bool {
	switch stored := stored.(type) {
	case dynamicinformer.PackedObject:
		return selector.Matches(stored.Labels())
	case metav1.Object:
		return selector.Matches(labels.Set(stored.GetLabels()))
	}
	return false
}
