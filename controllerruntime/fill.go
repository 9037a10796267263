package controllerruntime

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fillList writes the found objects into a list: shared objects if share is set, otherwise copies. Items that
// are structs are decoded in place.
func (f *converter) fillList(list client.ObjectList, results []result, share bool) error {
	itemsPointer, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	items := reflect.ValueOf(itemsPointer).Elem()
	if items.Type().Elem() != f.pointer.Elem() {
		return f.fillPointers(list, results, share)
	}
	filled := reflect.MakeSlice(items.Type(), len(results), len(results))
	for k, found := range results {
		if err := f.write(filled.Index(k), found, share); err != nil {
			return err
		}
	}
	items.Set(filled)
	return nil
}

// fillPointers is fillList for lists of pointers, interfaces and raw extensions.
func (f *converter) fillPointers(list client.ObjectList, results []result, share bool) error {
	objects := make([]runtime.Object, len(results))
	for k, found := range results {
		if (share || found.shared) && !found.reduced() {
			object, err := f.sharedObject(found.stored)
			if err != nil {
				return err
			}
			objects[k] = object
			continue
		}
		value := reflect.New(f.pointer.Elem())
		if err := f.write(value.Elem(), found, share); err != nil {
			return err
		}
		objects[k] = value.Interface().(runtime.Object)
	}
	return meta.SetList(list, objects)
}
