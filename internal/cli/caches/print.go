package caches

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/cli/output"
	"github.com/crdcache/crdcache/internal/packed"
)

// Print prints every object that is cached at this moment, in the order that sort gives the keys, and stops at the
// first error. Objects are decoded only for printers that need it, one at a time.
func (c Cache) Print(ctx context.Context, sort func(keys []string), printer output.Printer) error {
	snapshot := c.Informer.Snapshot()
	keys := snapshot.Keys()
	sort(keys)
	for _, key := range keys {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		item, _ := snapshot.Get(key) // the snapshot does not change
		if err := PrintItem(item, printer); err != nil {
			return fmt.Errorf("%s %s: %w", c.Resource.GVR.Resource, key, err)
		}
	}
	return nil
}

// PrintItem prints what a snapshot holds of one object.
func PrintItem(item any, printer output.Printer) error {
	object, ok := item.(*packed.Object)
	if !ok {
		u, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("the cache holds a %T", item)
		}
		return printer.Print(u)
	}
	if raw, ok := printer.(output.RawPrinter); ok {
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
