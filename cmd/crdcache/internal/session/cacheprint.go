package session

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// Section is all that is cached at this moment.
func (c Cache) Section() print.Section {
	snapshot := c.Informer.Snapshot()
	return print.Section{Resource: c.Resource, Len: snapshot.Len(), Print: func(ctx context.Context, sort func([]string), printer print.Printer) error {
		return c.print(ctx, snapshot, sort, printer)
	}}
}

// print prints every object of a snapshot, in the order that sort gives the keys, and stops at the
// first error. Objects are decoded only for printers that need it, one at a time.
func (c Cache) print(ctx context.Context, snapshot *dynamicinformer.Snapshot, sort func(keys []string), printer print.Printer) error {
	keys := snapshot.Keys()
	sort(keys)
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
