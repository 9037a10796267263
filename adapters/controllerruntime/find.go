package controllerruntime

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/adapters/controllerruntime/internal/convert"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// find returns the stored objects of some informers that options select. It decodes nothing.
func (r *resource) find(informers []*scopedInformer,
	options client.ListOptions) (results []convert.Result, err error) {
	for _, scoped := range informers {
		objects, count, err := r.search(scoped, options)
		if err != nil {
			return nil, err
		}
		if results == nil && options.LabelSelector == nil && options.Limit <= 0 {
			results = make([]convert.Result, 0, count)
		}
		for _, stored := range objects {
			if options.LabelSelector != nil && !matches(options.LabelSelector, stored) {
				continue
			}
			results = append(results, convert.Result{Stored: stored, Shared: scoped.mayShareObjects,
				KeptFields: scoped.keptFields(stored)})
			if options.Limit > 0 && int64(len(results)) >= options.Limit {
				return results, nil
			}
		}
	}
	return results, nil
}

// search returns the objects of an informer that match the namespace and the field selector of the options,
// with their keys. count is their number, or 0 with a field selector.
func (r *resource) search(scoped *scopedInformer, options client.ListOptions) (
	objects iter.Seq2[string, runtime.Object], count int, err error) {
	content := scoped.informer().Snapshot()
	if options.FieldSelector != nil {
		lookups, err := r.lookups(scoped, content, options.FieldSelector)
		if err != nil {
			return nil, 0, err
		}
		return searchIndexes(lookups, content, options.Namespace), 0, nil
	}
	if options.Namespace != "" {
		if byNamespace, ok := content.Index(toolscache.NamespaceIndex); ok {
			return byNamespace.Objects(options.Namespace), byNamespace.Count(options.Namespace), nil
		}
	}
	return content.AllStored(), content.Len(), nil
}

type indexLookup struct {
	index dynamicinformer.SnapshotIndex
	value string
}

func (r *resource) lookups(scoped *scopedInformer, content *dynamicinformer.Snapshot,
	selector fields.Selector) ([]indexLookup, error) {
	var lookups []indexLookup
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
			return nil, noIndexError(fieldIndexName(required.Field))
		}
		if field := scoped.droppedFields[name]; field != "" {
			return nil, fmt.Errorf("index %q reads %s, which the cache does not store: add the field to Keep, "+"or remove it from Prune", required.Field, field)
		}
		lookups = append(lookups, indexLookup{index, value})
	}
	if len(lookups) == 0 {
		return nil, errInexactFieldSelector
	}
	return lookups, nil
}

var errInexactFieldSelector = errors.New("non-exact field matches are not supported by the cache")

// searchIndexes returns the objects that match all lookups, in one namespace or all. It iterates over the
// lookup with the fewest objects.
func searchIndexes(lookups []indexLookup, content *dynamicinformer.Snapshot,
	namespace string) iter.Seq2[string, runtime.Object] {
	smallest := slices.MinFunc(lookups, func(a, b indexLookup) int {
		return cmp.Compare(a.index.Count(a.value), b.index.Count(b.value))
	})
	if namespace != "" {
		if byNamespace, ok := content.Index(toolscache.NamespaceIndex); ok &&
			byNamespace.Count(namespace) < smallest.index.Count(smallest.value) {
			smallest = indexLookup{byNamespace, namespace}
		}
	}
	prefix := namespace + "/"
	return func(yield func(string, runtime.Object) bool) {
		for key, stored := range smallest.index.Objects(smallest.value) {
			if namespace != "" && !strings.HasPrefix(key, prefix) {
				continue
			}
			misses := func(w indexLookup) bool { return w != smallest && !w.index.Has(w.value, key) }
			if !slices.ContainsFunc(lookups, misses) && !yield(key, stored) {
				return
			}
		}
	}
}

// matches reports whether an object has the selected labels. It decodes nothing.
func matches(selector labels.Selector, stored any) bool {
	switch stored := stored.(type) {
	case dynamicinformer.PackedObject:
		return selector.Matches(stored.Labels())
	case metav1.Object:
		return selector.Matches(labels.Set(stored.GetLabels()))
	}
	return false
}
