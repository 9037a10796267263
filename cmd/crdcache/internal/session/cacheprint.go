package session

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/query"
)

// Section is the objects that are cached at this moment, in an order, or in that of the API server if it is nil. It
// has only the objects with keys after one; empty: all.
func (c Cache) Section(order *print.Order, after string) print.Section {
	snapshot := c.Informer.Snapshot()
	return print.Section{Resource: c.Resource, Empty: snapshot.Len() == 0, Each: func(w *print.Writer) (err error) {
		keys := slices.DeleteFunc(snapshot.Keys(), func(key string) bool { return key <= after })
		if order == nil {
			w.Sort(keys)
		} else if keys, err = c.sorted(w, snapshot, keys, order); err != nil {
			return err
		}
		if w.KeysOnly() {
			return w.Keys(keys)
		}
		for _, key := range keys {
			item, _ := snapshot.Stored(key) // the snapshot does not change
			if err := c.print(w, key, item); err != nil {
				return err
			}
		}
		return nil
	}}
}

// sorted returns the keys in the order of their objects.
func (c Cache) sorted(w *print.Writer, snapshot *dynamicinformer.Snapshot, keys []string, order *print.Order) ([]string, error) {
	print.SortKeys(keys)
	return print.Sorted(order, keys, func(key string) (*unstructured.Unstructured, error) {
		item, _ := snapshot.Stored(key)
		object, err := Decoded(item)
		if err != nil {
			return nil, c.explain(key, err)
		}
		return object, w.Err()
	})
}

func (c Cache) explain(key string, err error) error {
	return fmt.Errorf("%s %s: %w", c.Resource.GVR.Resource, key, err)
}

// print prints an object as the snapshot holds it.
func (c Cache) print(w *print.Writer, key string, item any) error {
	if err := w.Err(); err != nil {
		return err
	}
	var err error
	if object, ok := item.(dynamicinformer.PackedObject); ok {
		err = object.View(func(json []byte) error { return w.Print(print.Object{Key: key, JSON: json}) })
	} else {
		var object *unstructured.Unstructured
		if object, err = Decoded(item); err == nil {
			err = w.Print(print.Object{Key: key, Decoded: object})
		}
	}
	if err != nil {
		return c.explain(key, err)
	}
	return nil
}

// Decoded is the object that a snapshot holds, which has given it as Stored.
func Decoded(item any) (*unstructured.Unstructured, error) {
	switch object := item.(type) {
	case *unstructured.Unstructured:
		return object, nil
	case dynamicinformer.PackedObject:
		return object.Decode()
	}
	return nil, fmt.Errorf("the cache holds a %T", item)
}

// ResultSection is the objects that a query found, in their order.
func ResultSection(of discovery.Resource, result *query.Result) print.Section {
	return print.Section{Resource: of, Empty: result.Len() == 0, Each: func(w *print.Writer) error {
		if w.KeysOnly() {
			return w.Keys(result.Keys())
		}
		return result.AllJSON(func(key string, json []byte) error { return w.Print(print.Object{Key: key, JSON: json}) })
	}}
}
