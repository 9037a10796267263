package session

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/requests"
)

const (
	// chunkSize is the number of objects per page, as in kubectl.
	chunkSize = 500
	// maxParallelLists bounds the types that are listed concurrently.
	maxParallelLists = 10
	// maxListAttempts bounds how often a list is begun again because it has expired.
	maxListAttempts = 3
)

// ObjectList is the list of a type in the server's order. Several objects can have the same key.
type ObjectList struct {
	Resource discovery.Resource
	// items are of the types dynamicinformer.PackedObject, filesource.Object or *unstructured.Unstructured.
	items []any
}

// Len returns the number of objects.
func (l ObjectList) Len() int { return len(l.items) }

// ListAll lists all types, several at a time, with a progress line on stderr. It returns the lists that could
// be read, in the order of the types, and joins the errors of the others.
func (t *Types) ListAll(ctx, limitedCtx context.Context) ([]ObjectList, error) {
	lists, errs := make([]ObjectList, len(t.Resources)), make([]error, len(t.Resources))
	var doneCount atomic.Int64
	defer t.reader.Progress(func() (int, int) { return int(doneCount.Load()), len(t.Resources) })()
	// The requests end with limitedCtx.
	workqueue.ParallelizeUntil(ctx, maxParallelLists, len(t.Resources), func(i int) {
		lists[i], errs[i] = t.list(limitedCtx, t.Resources[i], t.reader.NamespaceFor(t.Resources[i]))
		doneCount.Add(1)
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var complete []ObjectList
	for i, list := range lists {
		if errs[i] == nil {
			complete = append(complete, list)
		}
	}
	return complete, errors.Join(errs...)
}

// list reads all pages of a type at one resource version. It begins again if the list expires.
func (t *Types) list(ctx context.Context, resource discovery.Resource, namespace string) (list ObjectList,
	err error) {
	for range maxListAttempts {
		list = ObjectList{Resource: resource}
		for token := ""; ; {
			var page []any
			page, token, err = t.page(ctx, resource, namespace, token)
			list.items = append(list.items, page...)
			if err != nil || token == "" {
				break
			}
		}
		if !apierrors.IsResourceExpired(err) {
			break
		}
	}
	return list, err
}

// page reads a page, and the token of the next one. It repeats failed requests.
func (t *Types) page(ctx context.Context, resource discovery.Resource, namespace, token string) (page []any,
	next string, err error) {
	options, selects, err := t.reader.listOptions(resource)
	if err != nil {
		return nil, "", fmt.Errorf("list %s: %w", resource, err)
	}
	options.Limit, options.Continue = chunkSize, token
	objects, _ := t.reader.source.List(resource.GVR, namespace, options, !t.reader.OmitsManagedFields())
	if objects != nil && (t.tableClient == nil || t.HasColumns(resource.GVR)) {
		for o := range objects {
			if namespace, _ := naming.SplitKey(o.Key()); selects(namespace) {
				page = append(page, o)
			}
		}
		return page, "", nil
	}
	var items []any
	err = t.reader.Retry(ctx, resource.GVR.GroupResource().String(), func() (err error) {
		var meta metav1.ListMeta
		items, meta, err = requests.ListPage(ctx, t.clientFor(resource.GVR), resource.GVR,
			namespace, options, t.reader.OmitsManagedFields())
		next = meta.Continue
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list %s: %w", resource, err)
	}
	for _, item := range items {
		if object, ok := item.(*unstructured.Unstructured); ok {
			t.reader.removeOmitted(object)
		}
		if selects(item.(metav1.Object).GetNamespace()) {
			page = append(page, item)
		}
	}
	return page, next, nil
}

// Section returns the listed objects in the given order. A nil order means the server's order.
func (l ObjectList) Section(rows *print.Rows, order *print.Order) print.Section {
	return print.Section{Resource: l.Resource, Empty: len(l.items) == 0, Rows: rows,
		Each: func(w *print.Writer) (err error) {
			items := l.items
			if order != nil {
				items, err = print.Sorted(order, items, func(item any) (*unstructured.Unstructured, error) {
					object, err := DecodeStored(item)
					if err != nil {
						return nil, wrapErr(l.Resource, keyOf(item), err)
					}
					return object, w.Err()
				})
			}
			if err != nil {
				return err
			}
			return naming.Each(items, func(item any) error { return printItem(w, l.Resource, item) })
		}}
}

func printItem(w *print.Writer, resource discovery.Resource, item any) error {
	key := keyOf(item)
	err := w.Err()
	if err != nil || w.KeysOnly() {
		return w.Print(print.Object{Key: key}) // it returns the same error
	}
	switch object := item.(type) {
	case interface {
		ReadJSON(func([]byte) error) error
	}:
		err = object.ReadJSON(func(json []byte) error { return w.Print(print.Object{Key: key, JSON: json}) })
	case *unstructured.Unstructured:
		err = w.Print(print.Object{Key: key, Decoded: object})
	}
	if err != nil {
		return wrapErr(resource, key, err)
	}
	return nil
}

func wrapErr(resource discovery.Resource, key string, err error) error {
	return fmt.Errorf("%s %s: %w", resource.GVR.Resource, key, err)
}

func keyOf(item any) string {
	if object, ok := item.(interface{ Key() string }); ok {
		return object.Key()
	}
	return cache.MetaObjectToName(item.(metav1.Object)).String()
}
