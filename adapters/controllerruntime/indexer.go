package controllerruntime

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/adapters/controllerruntime/internal/convert"
)

// indexer is the read-only cache.Indexer of an Informer. It reads the current informers of a resource and
// returns shared objects of the resource's form. Reduced objects are marked.
type indexer struct {
	foreignIndexer //lint:ignore U1000 nil; it has the methods that newer releases add
	resource       *resource
}

var errReadOnly = errors.New("the store of an informer is read-only: write objects to the API server")

func (*indexer) Add(any) error               { return errReadOnly }
func (*indexer) Update(any) error            { return errReadOnly }
func (*indexer) Delete(any) error            { return errReadOnly }
func (*indexer) Replace([]any, string) error { return errReadOnly }
func (*indexer) Resync() error               { return nil }

// Bookmark implements cache.Store and does nothing.
func (*indexer) Bookmark(string) {}

func (x *indexer) LastStoreSyncResourceVersion() string {
	return x.resource.informer.LastSyncResourceVersion()
}

// List returns all objects. It reports an object that does not fit the form, and leaves it out.
func (x *indexer) List() []any {
	objects := []any{}
	for _, scoped := range x.resource.current.Load().informersByNamespace {
		for _, stored := range scoped.informer().Snapshot().AllStored() {
			object, err := x.object(scoped, stored)
			if err != nil {
				utilruntime.HandleError(err) // a store is read without a context
				continue
			}
			objects = append(objects, object)
		}
	}
	return objects
}

func (x *indexer) ListKeys() []string {
	keys := []string{}
	for _, informer := range x.resource.current.Load().informers() {
		keys = append(keys, informer.Snapshot().Keys()...)
	}
	return keys
}

func (x *indexer) Get(object any) (item any, exists bool, err error) {
	key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return nil, false, toolscache.KeyError{Obj: object, Err: err}
	}
	return x.GetByKey(key)
}

// GetByKey implements cache.Store. It returns an error for an object that does not fit the form.
func (x *indexer) GetByKey(key string) (item any, exists bool, err error) {
	namespace, _, _ := toolscache.SplitMetaNamespaceKey(key) // nothing has an invalid key
	scoped := x.resource.current.Load().forNamespace(namespace)
	if scoped == nil {
		return nil, false, nil
	}
	stored, exists := scoped.informer().Snapshot().Stored(key)
	if !exists {
		return nil, false, nil
	}
	object, err := x.object(scoped, stored)
	return object, true, err
}

// Index returns the objects that share a value of an index with an object of any type with metadata.
func (x *indexer) Index(name string, object any) (objects []any, err error) {
	keys, ok := x.GetIndexers()[name]
	if !ok {
		return nil, noIndexError(name)
	}
	values, err := keys(object)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, value := range values {
		err := x.each(name, value, func(scoped *scopedInformer, key string, stored any) error {
			if found[key] {
				return nil
			}
			found[key] = true
			object, err := x.object(scoped, stored)
			objects = append(objects, object)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func (x *indexer) IndexKeys(name, value string) (keys []string, err error) {
	return keys, x.each(name, value, func(_ *scopedInformer, key string, _ any) error {
		keys = append(keys, strings.Clone(key)) // it shares the object's memory
		return nil
	})
}

func (x *indexer) ByIndex(name, value string) (objects []any, err error) {
	err = x.each(name, value, func(scoped *scopedInformer, _ string, stored any) error {
		object, err := x.object(scoped, stored)
		objects = append(objects, object)
		return err
	})
	return objects, err
}

// ListIndexFuncValues implements cache.Indexer. The values of an index of IndexField include namespaces.
func (x *indexer) ListIndexFuncValues(name string) []string {
	values := map[string]bool{}
	nameInInformers, isField := x.resolve(name)
	for _, informer := range x.resource.current.Load().informers() {
		index, ok := informer.Snapshot().Index(nameInInformers)
		if !ok {
			continue
		}
		for value := range index.All() {
			if !isField {
				values[value] = true
				continue
			}
			values[keyInNamespace("", value)] = true
			for key := range index.Objects(value) {
				if namespace, _, namespaced := strings.Cut(key, "/"); namespaced {
					values[keyInNamespace(namespace, value)] = true
				}
			}
		}
	}
	return slices.Collect(maps.Keys(values))
}

// GetIndexers returns the index functions as the stock cache has them: by namespace, and those of IndexField
// and AddIndexers.
func (x *indexer) GetIndexers() toolscache.Indexers {
	indexers := toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}
	for name, added := range x.resource.indexes.allAdded() {
		indexers[name] = added.keys
		if added.isField {
			indexers[name] = keysInNamespaces(added.keys)
		}
	}
	return indexers
}

func (x *indexer) AddIndexers(added toolscache.Indexers) error {
	return x.resource.addIndexers(added, false)
}

func (x *indexer) object(scoped *scopedInformer, stored any) (client.Object, error) {
	object, err := x.resource.converter.SharedObject(stored)
	if keptFields := scoped.keptFields(stored); err == nil && keptFields != "" {
		object = convert.MarkedCopy(object, keptFields)
	}
	return object, err
}

// each calls visit for each object with a value of an index, until visit fails.
func (x *indexer) each(name, value string,
	visit func(scoped *scopedInformer, key string, stored any) error) error {
	for _, scoped := range x.resource.current.Load().informersByNamespace {
		objects, err := x.search(scoped, name, value)
		if err != nil {
			return err
		}
		for key, stored := range objects {
			if err := visit(scoped, key, stored); err != nil {
				return err
			}
		}
	}
	return nil
}

// search returns the objects of an informer with a value of an index.
func (x *indexer) search(scoped *scopedInformer, name, value string) (iter.Seq2[string, runtime.Object],
	error) {
	nameInInformers, isField := x.resolve(name)
	index, ok := scoped.informer().Snapshot().Index(nameInInformers)
	if !ok {
		return nil, noIndexError(name)
	}
	if !isField {
		return index.Objects(value), nil
	}
	namespace, value, ok := strings.Cut(value, "/")
	if !ok || namespace == "" {
		return func(func(string, runtime.Object) bool) {}, nil
	}
	if namespace == allNamespaces {
		namespace = metav1.NamespaceAll
	}
	objects, _, err := x.resource.search(scoped, client.ListOptions{Namespace: namespace,
		FieldSelector: fields.OneTermEqualSelector(strings.TrimPrefix(name, fieldIndexName("")), value)})
	return objects, err
}

// resolve returns the name of an index in the informers, or "" if it does not exist. isField reports whether
// its values in the informers lack the namespace that the stock cache's values have.
func (x *indexer) resolve(name string) (nameInInformers string, isField bool) {
	if added, ok := x.resource.indexes.allAdded()[name]; ok {
		return added.name, added.isField
	}
	if name == toolscache.NamespaceIndex {
		return name, false
	}
	if field, isField := strings.CutPrefix(name, fieldIndexName("")); isField {
		return x.resource.indexes.configured.indexes[field].name, true
	}
	return "", false
}

// allNamespaces is the text of the stock cache in place of a namespace in its index values.
const allNamespaces = "__all_namespaces"

// keyInNamespace returns the index value of the stock cache for a field's value. Programs build such values.
func keyInNamespace(namespace, value string) string {
	if namespace == "" {
		namespace = allNamespaces
	}
	return namespace + "/" + value
}

// keysInNamespaces returns the index function of the stock cache for the values of a field.
func keysInNamespaces(values toolscache.IndexFunc) toolscache.IndexFunc {
	return func(object any) (keys []string, err error) {
		found, err := values(object)
		if err != nil {
			return nil, err
		}
		for _, namespace := range slices.Compact([]string{object.(client.Object).GetNamespace(), ""}) {
			for _, value := range found {
				keys = append(keys, keyInNamespace(namespace, value))
			}
		}
		return keys, nil
	}
}

// noIndexError returns the same error text as client-go.
func noIndexError(name string) error {
	return fmt.Errorf("Index with name %s does not exist", name)
}
