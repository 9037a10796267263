package session

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// Section is all that is cached at this moment.
func (c Cache) Section() print.Section {
	snapshot := c.Informer.Snapshot()
	return print.Section{Resource: c.Resource, Len: snapshot.Len(), Print: func(ctx context.Context, sort func([]string), printer print.Printer) error {
		keys := snapshot.Keys()
		sort(keys)
		return c.print(ctx, snapshot, keys, printer)
	}}
}

// Sorted is Section in another order.
func (c Cache) Sorted(order *print.Order) print.Section {
	snapshot := c.Informer.Snapshot()
	return print.Section{Resource: c.Resource, Len: snapshot.Len(), Print: func(ctx context.Context, _ func([]string), printer print.Printer) error {
		keys, values := snapshot.Keys(), make(map[string]any, snapshot.Len())
		for _, key := range keys {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			item, _ := snapshot.Stored(key)
			object, err := Decoded(item)
			if err != nil {
				return fmt.Errorf("%s %s: %w", c.Resource.GVR.Resource, key, err)
			}
			if values[key], err = order.Key(object.Object); err != nil {
				return err
			}
		}
		print.SortKeys(keys)
		if err := order.Sort(keys, values); err != nil {
			return err
		}
		return c.print(ctx, snapshot, keys, printer)
	}}
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

// print prints the objects of a snapshot that have these keys, and stops at the first error. Objects are decoded only
// for printers that need it, one at a time.
func (c Cache) print(ctx context.Context, snapshot *dynamicinformer.Snapshot, keys []string, printer print.Printer) error {
	for _, key := range keys {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		item, _ := snapshot.Stored(key) // the snapshot does not change
		if err := printItem(item, printer); err != nil {
			return fmt.Errorf("%s %s: %w", c.Resource.GVR.Resource, key, err)
		}
	}
	return nil
}

// named is what packed objects tell without being decoded.
type named interface {
	GetObjectKind() schema.ObjectKind
	GetName() string
}

// printItem prints what a snapshot holds of one object.
func printItem(item any, printer print.Printer) error {
	object, ok := item.(dynamicinformer.PackedObject)
	if !ok {
		u, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("the cache holds a %T", item)
		}
		return printer.Print(u)
	}
	if names, ok := printer.(print.NamePrinter); ok {
		if named, ok := item.(named); ok {
			return names.PrintName(named.GetObjectKind().GroupVersionKind().GroupKind(), named.GetName())
		}
	}
	if raw, ok := printer.(print.RawPrinter); ok {
		printed := false
		err := object.View(func(json []byte) (err error) {
			printed, err = raw.PrintRaw(json)
			return err
		})
		if printed || err != nil {
			return err
		}
	}
	u, err := object.Decode()
	if err != nil {
		return err
	}
	return printer.Print(u)
}
