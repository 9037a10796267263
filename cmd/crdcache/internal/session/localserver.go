package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi/live"
)

// LocalServer is a local cache server that caches the resource type that the command reads.
type LocalServer struct {
	*localserver.Client
	localserver.CachedType
	// ResolvedTypes has only the cached type.
	ResolvedTypes *Types
	// configDigest identifies the index configs that queries need. It is empty if they need none.
	configDigest string
}

// LocalServer returns the local cache server if it caches the type with a live watch and has the indexes of
// the same config. The error says why the server cannot answer.
func (r *Reader) LocalServer(ctx context.Context) (*LocalServer, error) {
	switch {
	case r.informerOptions.FieldSelector != nil:
		return nil, errors.New("it does not support field selectors")
	case len(r.typeNames) != 1:
		return nil, errors.New("it supports one type per request")
	}
	answer, err := r.localServer.Resolve(ctx, r.typeNames[0])
	if err != nil {
		return nil, err
	}
	if len(answer.Resources) != 1 {
		return nil, fmt.Errorf("%s matches several types", r.typeNames[0])
	}
	resource := answer.Resources[0]
	i := slices.IndexFunc(answer.Types,
		func(cached localserver.CachedType) bool { return cached.Resource.GVR == resource.GVR })
	if i < 0 {
		return nil, fmt.Errorf("it does not cache %s", resource)
	}
	cached, configDigest := answer.Types[i], ""
	if r.Config.IsSet {
		configDigest = r.Config.Digest()
	}
	switch {
	case !cached.Live:
		return nil, fmt.Errorf("its cache of %s may be out of date: %s", resource, cached.State)
	case cached.Namespace != "" && cached.Namespace != r.Namespace:
		return nil, fmt.Errorf("it caches %s only in the namespace %s", resource, cached.Namespace)
	case configDigest != "" && configDigest != answer.Config:
		return nil, localserver.ErrOtherConfig
	case cached.Reduced && configDigest == "":
		return nil, errors.New("its config drops fields of the objects")
	case !r.Config.IsSet && slices.ContainsFunc(cached.Indexes, query.IsBuiltinOrder):
		return nil, errors.New("one of its indexes has the name of a built-in order")
	}
	types, err := r.newTypes([]discovery.Resource{resource})
	return &LocalServer{r.localServer, cached, types, configDigest}, err
}

// NamespaceFor returns the namespace in which to read a type, or "" for all.
func (r *Reader) NamespaceFor(resource discovery.Resource) string {
	if resource.Scope == discovery.Namespaced {
		return r.Namespace
	}
	return ""
}

// Query sends a query with the label selector and the namespace of the command. It returns when the answer
// begins. The caller must close the answer.
func (l *LocalServer) Query(ctx context.Context, parameters url.Values) (*Answer, error) {
	r := l.ResolvedTypes.reader
	if r.informerOptions.LabelSelector != nil {
		parameters.Set("labelSelector", r.informerOptions.LabelSelector.String())
	}
	readCtx, cancel := context.WithCancel(ctx)
	limitedCtx, cancelLimit := r.WithTimeout(ctx)
	defer cancelLimit()
	stop := context.AfterFunc(limitedCtx, cancel)
	defer stop()
	gvr := l.Resource.GVR
	path := live.QueryPath(gvr.Group, gvr.Version, r.NamespaceFor(l.Resource), gvr.Resource)
	body, err := l.Open(readCtx, path, parameters, l.configDigest)
	if err != nil {
		cancel()
		return nil, err
	}
	answer := &Answer{body: body, cancel: cancel, resource: l.Resource}
	if answer.AnswerReader, err = live.ReadAnswer(body); err != nil {
		answer.Close()
		return nil, err
	}
	return answer, nil
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

// Section returns the objects of the answer.
func (a *Answer) Section(rows *print.Rows, stripManagedFields bool) print.Section {
	return print.Section{Resource: a.resource, Rows: rows, Each: func(w *print.Writer) error {
		if w.KeysOnly() {
			return w.PrintKeys(a.Keys)
		}
		var stripped []byte
		return a.each(func(text []byte) error {
			if stripManagedFields {
				stripped = jsontext.AppendWithout(stripped[:0], text, "metadata", "managedFields")
				text = stripped
			}
			return w.Print(print.Object{JSON: text})
		})
	}}
}

func (a *Answer) each(visit func(text []byte) error) error {
	var visitErr error
	err := a.Each(func(text []byte) error { visitErr = visit(text); return visitErr })
	if err != nil && visitErr == nil {
		return fmt.Errorf("the cache server ended its answer for %s early: %w", a.resource, err)
	}
	return err
}

// RowSection returns the rows of the answer. Its objects have only the metadata that a table needs.
func (a *Answer) RowSection() print.Section {
	var row live.Row // the current row
	rows := print.NewServerRows(a.Columns, func(*unstructured.Unstructured) []any { return row.Cells })
	return print.Section{Resource: a.resource, Rows: rows, Each: func(w *print.Writer) error {
		return a.each(func(text []byte) error {
			if err := row.UnmarshalJSON(text); err != nil {
				return err
			}
			object := &unstructured.Unstructured{Object: map[string]any{}}
			object.SetNamespace(row.Namespace)
			object.SetName(row.Name)
			object.SetLabels(row.Labels)
			return w.Print(print.NewObject(object))
		})
	}}
}

const (
	// For up to maxGets objects, PrintedSection reads each object with a request of its own.
	maxGets      = 100
	parallelGets = 10
)

// PrintedSection reads the objects with the given keys, and the API server's rows. For many keys, it lists
// their namespaces. The section has the order of the keys, without deleted objects.
func (t *Types) PrintedSection(ctx context.Context, keys []string) (print.Section, error) {
	ctx, cancel := t.reader.WithTimeout(ctx)
	defer cancel()
	readObjects := t.getEach
	if len(keys) > maxGets {
		readObjects = t.listByNamespace
	}
	resource, objects := t.Resources[0], make([]any, len(keys))
	err := readObjects(ctx, resource, keys, objects)
	objects = slices.DeleteFunc(objects, func(object any) bool { return object == nil })
	return ObjectList{resource, objects}.Section(t.Rows(resource.GVR), nil), err
}

func (t *Types) getEach(ctx context.Context, r discovery.Resource, keys []string, objects []any) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client := t.clientFor(r.GVR).Resource(r.GVR)
	workqueue.ParallelizeUntil(ctx, parallelGets, len(keys), func(i int) {
		namespace, name := naming.SplitKey(keys[i])
		switch object, err := client.Namespace(namespace).Get(ctx, name, metav1.GetOptions{}); {
		case err == nil:
			objects[i] = object
		case !apierrors.IsNotFound(err):
			cancel(err)
		}
	})
	return context.Cause(ctx)
}

func (t *Types) listByNamespace(ctx context.Context, r discovery.Resource, keys []string,
	objects []any) error {
	indexes, namespaces := map[string]int{}, map[string]bool{}
	for i, key := range keys {
		namespace, _ := naming.SplitKey(key)
		indexes[key], namespaces[namespace] = i, true
	}
	for namespace := range namespaces {
		list, err := t.list(ctx, r, namespace)
		if err != nil {
			return err
		}
		for _, item := range list.items {
			if i, ok := indexes[keyOf(item)]; ok {
				objects[i] = item
			}
		}
	}
	return nil
}
