package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/workqueue"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/readapi/live"
)

// LocalServer is a local cache server that caches the type of a command.
type LocalServer struct {
	*localserver.Client
	localserver.CachedType
	// ResolvedTypes has the cached type only. It prints the server's answers.
	ResolvedTypes *Types
	// config is the digest of the index configs that queries need; empty if they need none.
	config string
}

// LocalServer returns the local cache server if it can answer in place of the command: it caches the type,
// its watch is live, and for usesIndexes it has the same indexes. Otherwise the error states the reason.
func (r *Reader) LocalServer(ctx context.Context, usesIndexes bool) (*LocalServer, error) {
	switch {
	case r.cached.FieldSelector != nil:
		return nil, errors.New("it does not support field selectors")
	case len(r.types) != 1:
		return nil, errors.New("it supports one type per request")
	}
	answer, err := r.localServer.Resolve(ctx, r.types[0])
	if err != nil {
		return nil, err
	}
	if len(answer.Resources) != 1 {
		return nil, fmt.Errorf("%s matches several types", r.types[0])
	}
	resource := answer.Resources[0]
	i := slices.IndexFunc(answer.Types,
		func(k localserver.CachedType) bool { return k.Resource.GVR == resource.GVR })
	if i < 0 {
		return nil, fmt.Errorf("it does not cache %s", resource)
	}
	cached, config := answer.Types[i], ""
	if usesIndexes && r.Config.IsSet {
		config = r.Config.Digest()
	}
	switch {
	case !cached.Live:
		return nil, fmt.Errorf("its cache of %s may be out of date: %s", resource, cached.State)
	case cached.Namespace != "" && cached.Namespace != r.Namespace:
		return nil, fmt.Errorf("it caches %s only in the namespace %s", resource, cached.Namespace)
	case config != "" && config != answer.Config:
		return nil, localserver.ErrOtherConfig
	case usesIndexes && !r.Config.IsSet && slices.ContainsFunc(cached.Indexes, query.IsBuiltinOrder):
		return nil, errors.New("one of its indexes has the name of a built-in order")
	}
	types, err := r.typesOf([]discovery.Resource{resource})
	return &LocalServer{r.localServer, cached, types, config}, err
}

// NamespaceFor returns the namespace to read a type in, or "" for all.
func (r *Reader) NamespaceFor(resource discovery.Resource) string {
	if resource.Scope == discovery.Namespaced {
		return r.Namespace
	}
	return ""
}

// Query sends a query with the label selector and the namespace of the command, and waits for the start of
// the answer. The caller must close the answer.
func (l *LocalServer) Query(ctx context.Context, parameters url.Values) (*Answer, error) {
	r := l.ResolvedTypes.reader
	if r.cached.LabelSelector != nil {
		parameters.Set("labelSelector", r.cached.LabelSelector.String())
	}
	readCtx, cancel := context.WithCancel(ctx)
	limitedCtx, done := r.Limit(ctx)
	defer done()
	stop := context.AfterFunc(limitedCtx, cancel)
	defer stop()
	gvr := l.Resource.GVR
	path := live.QueryPath(gvr.Group, gvr.Version, r.NamespaceFor(l.Resource), gvr.Resource)
	body, err := l.Open(readCtx, path, parameters, l.config)
	if err != nil {
		cancel()
		return nil, err
	}
	a := &Answer{body: body, cancel: cancel, resource: l.Resource}
	if a.AnswerReader, err = live.ReadAnswer(body); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// Answer is a query result of the local cache server. Its objects or rows are read while they are printed.
type Answer struct {
	*live.AnswerReader
	body     io.Closer
	cancel   context.CancelFunc
	resource discovery.Resource
}

// Close cancels the request.
func (a *Answer) Close() {
	a.cancel()
	_ = a.body.Close()
}

// Section returns the objects of the answer. With strip it removes their managed fields.
func (a *Answer) Section(rows print.RowFormatter, strip bool) print.Section {
	return print.Section{Resource: a.resource, Rows: rows, Each: func(w *print.Writer) error {
		if w.KeysOnly() {
			return w.Keys(a.Keys)
		}
		var stripped []byte
		return a.each(func(text []byte) error {
			if strip {
				stripped = jsontext.AppendWithout(stripped[:0], text, "metadata", "managedFields")
				text = stripped
			}
			return w.Print(print.Object{JSON: text})
		})
	}}
}

// each calls take with the JSON of each object or row.
func (a *Answer) each(take func(text []byte) error) error {
	var failed error
	err := a.Each(func(text []byte) error { failed = take(text); return failed })
	if err != nil && failed == nil {
		return fmt.Errorf("the cache server ended its answer for %s early: %w", a.resource, err)
	}
	return err
}

// RowSection returns the rows of the answer, optionally sorted like a list of objects. A row has only the
// metadata that a table needs.
func (a *Answer) RowSection(sorted bool) print.Section {
	var row live.Row // the current row
	rows := print.NewPrintedRows(a.Columns, func(*unstructured.Unstructured) []any { return row.Cells })
	show := func(w *print.Writer, next live.Row) error {
		row = next
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetNamespace(row.Namespace)
		object.SetName(row.Name)
		object.SetLabels(row.Labels)
		return w.Print(print.Decoded(object))
	}
	return print.Section{Resource: a.resource, Rows: rows, Each: func(w *print.Writer) error {
		byKey := map[string]live.Row{}
		err := a.each(func(text []byte) error {
			var next live.Row
			if err := next.UnmarshalJSON(text); err != nil {
				return err
			}
			if !sorted {
				return show(w, next)
			}
			byKey[cache.NewObjectName(next.Namespace, next.Name).String()] = next
			return w.Err()
		})
		keys := slices.Collect(maps.Keys(byKey))
		print.SortKeys(keys)
		for _, key := range keys {
			if err == nil {
				err = show(w, byKey[key])
			}
		}
		return err
	}}
}

const (
	// maxGets is the number of objects up to which PrintedSection reads them one by one.
	maxGets = 100
	// parallelGets bounds the concurrent requests.
	parallelGets = 10
)

// PrintedSection reads the objects with the given keys and the API server's rows. It requests only these
// objects, or their namespaces if there are many. It keeps the order of the keys and omits deleted objects.
func (t *Types) PrintedSection(ctx context.Context, keys []string) (print.Section, error) {
	ctx, cancel := t.reader.Limit(ctx)
	defer cancel()
	names := make([]cache.ObjectName, len(keys))
	for i, key := range keys {
		var err error
		if names[i], err = cache.ParseObjectName(key); err != nil {
			return print.Section{}, err
		}
	}
	read := t.getAll
	if len(names) > maxGets {
		read = t.listNamespaces
	}
	objects := make([]*unstructured.Unstructured, len(names))
	err := read(ctx, names, objects)
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o == nil })
	return t.ObjectSection(t.Resources[0], objects), err
}

// getAll reads the existing objects one by one. It returns the first error.
func (t *Types) getAll(ctx context.Context, names []cache.ObjectName,
	objects []*unstructured.Unstructured) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	workqueue.ParallelizeUntil(ctx, parallelGets, len(names), func(i int) {
		switch object, err := t.from(names[i].Namespace).Get(ctx, names[i].Name, metav1.GetOptions{}); {
		case err == nil:
			objects[i] = object
		case !apierrors.IsNotFound(err):
			fail(err)
		}
	})
	return context.Cause(ctx)
}

// listNamespaces reads the existing objects with lists of their namespaces.
func (t *Types) listNamespaces(ctx context.Context, names []cache.ObjectName,
	objects []*unstructured.Unstructured) error {
	positions := map[string]map[cache.ObjectName]int{}
	for i, name := range names {
		if positions[name.Namespace] == nil {
			positions[name.Namespace] = map[cache.ObjectName]int{}
		}
		positions[name.Namespace][name] = i
	}
	for namespace, of := range positions {
		pages := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
			return t.from(namespace).List(ctx, options)
		}))
		err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
			object := item.(*unstructured.Unstructured)
			if i, ok := of[cache.MetaObjectToName(object)]; ok {
				objects[i] = object
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// from returns the client of the only type in a namespace.
func (t *Types) from(namespace string) dynamic.ResourceInterface {
	gvr := t.Resources[0].GVR
	return t.clientOf(gvr).Resource(gvr).Namespace(namespace)
}

// ObjectSection returns objects in the given order.
func (t *Types) ObjectSection(resource discovery.Resource,
	objects []*unstructured.Unstructured) print.Section {
	if len(objects) == 0 {
		return print.Section{Resource: resource, Empty: true}
	}
	return print.Section{Resource: resource, Rows: t.Rows(resource.GVR),
		Each: func(w *print.Writer) error {
			for _, object := range objects {
				if err := w.Print(print.Decoded(object)); err != nil {
					return err
				}
			}
			return nil
		}}
}
