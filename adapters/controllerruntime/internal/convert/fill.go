package convert

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// FillList writes the found objects into a list: shared objects if share is set, otherwise copies. Items that
// are structs are decoded in place.
func (c *Converter) FillList(list client.ObjectList, results []Result, share bool) error {
	itemsPointer, err := meta.GetItemsPtr(list)
	if err != nil {
		return err
	}
	items := reflect.ValueOf(itemsPointer).Elem()
	if items.Type().Elem() != c.Pointer.Elem() {
		return c.fillPointers(list, results, share)
	}
	filled := reflect.MakeSlice(items.Type(), len(results), len(results))
	for k, found := range results {
		if err := c.Write(filled.Index(k), found, share); err != nil {
			return err
		}
	}
	items.Set(filled)
	return nil
}

// fillPointers is FillList for lists of pointers, interfaces and raw extensions.
func (c *Converter) fillPointers(list client.ObjectList, results []Result, share bool) error {
	objects := make([]runtime.Object, len(results))
	for k, res := range results {
		if (share || res.Shared) && !res.Reduced() {
			object, err := c.SharedObject(res.Stored)
			if err != nil {
				return err
			}
			objects[k] = object
			continue
		}
		value := reflect.New(c.Pointer.Elem())
		if err := c.Write(value.Elem(), res, share); err != nil {
			return err
		}
		objects[k] = value.Interface().(runtime.Object)
	}
	return meta.SetList(list, objects)
}
