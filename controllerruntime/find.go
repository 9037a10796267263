package controllerruntime

import (
	"errors"
	"iter"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/dynamicinformer"
)

type result struct {
	stored any
	// shared: readers get the stored object itself, not a copy.
	shared bool
}

// find returns the stored objects of some informers that options select. It decodes nothing.
func (r *resource) find(informers []*scopedInformer, options client.ListOptions) ([]result, error) {
	var results []result
	for _, v := range informers {
		yield := func(_ string, stored any) bool {
			if options.LabelSelector == nil || matches(options.LabelSelector, stored) {
				results = append(results, result{stored, v.mayShareObjects})
			}
			return options.Limit <= 0 || int64(len(results)) < options.Limit
		}
		if err := r.search(v, options, &results, yield); err != nil {
			return nil, err
		}
		if options.Limit > 0 && int64(len(results)) >= options.Limit {
			break
		}
	}
	return results, nil
}

// search yields the objects of a view that match the namespace and the field selector of the options.
func (r *resource) search(v *scopedInformer, options client.ListOptions, results *[]result,
	yield func(string, any) bool) error {
	content := v.informer().Snapshot()
	if options.FieldSelector != nil {
		lookups, err := r.lookups(content, options.FieldSelector)
		if err != nil {
			return err
		}
		searchIndexes(lookups, content, options.Namespace, yield)
		return nil
	}
	if options.Namespace != "" {
		if byNamespace, ok := content.Index(toolscache.NamespaceIndex); ok {
			*results = preallocate(*results, byNamespace.Count(options.Namespace), options)
			yieldAll(byNamespace.Objects(options.Namespace), yield)
			return nil
		}
	}
	*results = preallocate(*results, content.Len(), options)
	yieldAll(content.AllStored(), yield)
	return nil
}

func yieldAll(objects iter.Seq2[string, runtime.Object], yield func(string, any) bool) {
	objects(func(key string, object runtime.Object) bool { return yield(key, object) })
}

// preallocate preallocates the result if the number of objects is known.
func preallocate(results []result, more int, options client.ListOptions) []result {
	if options.LabelSelector != nil || options.Limit > 0 || len(results) > 0 {
		return results
	}
	return make([]result, 0, more)
}

type indexLookup struct {
	index dynamicinformer.SnapshotIndex
	value string
}

// lookups translates a field selector.
func (r *resource) lookups(content *dynamicinformer.Snapshot,
	selector fields.Selector) ([]indexLookup, error) {
	var all []indexLookup
	for _, required := range selector.Requirements() {
		if required.Operator != selection.Equals && required.Operator != selection.DoubleEquals {
			return nil, errInexactFieldSelector
		}
		name, value, err := r.indexes.find(required.Field, required.Value)
		if err != nil {
			return nil, err
		}
		index, ok := content.Index(name)
		if !ok {
			return nil, errNoIndex(required.Field)
		}
		all = append(all, indexLookup{index, value})
	}
	if len(all) == 0 {
		return nil, errInexactFieldSelector
	}
	return all, nil
}

var errInexactFieldSelector = errors.New("non-exact field matches are not supported by the cache")

// searchIndexes yields the objects that match all lookups, in one namespace or all. It walks the shortest
// result.
func searchIndexes(lookups []indexLookup, content *dynamicinformer.Snapshot, namespace string,
	yield func(string, any) bool) {
	shortest := 0
	for k := range lookups {
		if lookups[k].index.Count(lookups[k].value) < lookups[shortest].index.Count(lookups[shortest].value) {
			shortest = k
		}
	}
	walk := lookups[shortest]
	if namespace != "" {
		if by, ok := content.Index(toolscache.NamespaceIndex); ok &&
			by.Count(namespace) < walk.index.Count(walk.value) {
			walk = indexLookup{by, namespace}
		}
	}
	yieldAll(walk.index.Objects(walk.value), func(key string, stored any) bool {
		if namespace != "" && !(strings.HasPrefix(key, namespace) && len(key) > len(namespace) &&
			key[len(namespace)] == '/') {
			return true
		}
		for _, w := range lookups {
			if w != walk && !w.index.Has(w.value, key) {
				return true
			}
		}
		return yield(key, stored)
	})
}

// matches compares labels. It decodes nothing.
func matches(selector labels.Selector, stored any) bool {
	switch stored := stored.(type) {
	case dynamicinformer.PackedObject:
		return selector.Matches(stored.Labels())
	case metav1.Object:
		return selector.Matches(labels.Set(stored.GetLabels()))
	}
	return false
}
