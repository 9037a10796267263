package print

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// RowField is a field that TableClient adds to objects. It has the table row of the object.
const RowField = "crdcache.dev/printed"

// TableClient is a dynamic client that requests tables in lists and watches. Each object, also a deleted
// object, has its row in RowField. TableClient sends as many requests as other clients. If a server prints no
// tables, the objects have no rows. It is safe for concurrent use.
type TableClient struct {
	dynamic.Interface
	rest rest.Interface

	mu      sync.Mutex
	columns map[schema.GroupVersionResource][]metav1.TableColumnDefinition
	// listedCounts counts the objects of the latest list of a type.
	listedCounts map[schema.GroupVersionResource]int
}

// NewTableClient returns a client that sends table requests through tables, and all others through client.
func NewTableClient(tables rest.Interface, client dynamic.Interface) *TableClient {
	return &TableClient{Interface: client, rest: tables,
		columns:      map[schema.GroupVersionResource][]metav1.TableColumnDefinition{},
		listedCounts: map[schema.GroupVersionResource]int{}}
}

// IsWatchListSemanticsUnSupported makes reflectors list before they watch, because a list has the columns.
func (p *TableClient) IsWatchListSemanticsUnSupported() bool { return true }

func (p *TableClient) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	allNamespaces := p.Interface.Resource(gvr)
	return tableResource{&tableRequests{ResourceInterface: allNamespaces, client: p, gvr: gvr}, allNamespaces}
}

// Rows returns the rows of a listed type. If the server printed none, they have name and age.
func (p *TableClient) Rows(gvr schema.GroupVersionResource) *Rows {
	p.mu.Lock()
	defer p.mu.Unlock()
	if columns := p.columns[gvr]; columns != nil {
		return NewServerRows(columns, rowCells)
	}
	return NewRows(nil, time.Now)
}

// addPage records the columns of a page. It returns the 1-based position of the page's first row in the list.
func (p *TableClient) addPage(gvr schema.GroupVersionResource, page *metav1.Table, isFirst bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(page.ColumnDefinitions) > 0 {
		p.columns[gvr] = page.ColumnDefinitions
	}
	if isFirst {
		p.listedCounts[gvr] = 0
	}
	firstIndex := p.listedCounts[gvr] + 1
	p.listedCounts[gvr] += len(page.Rows)
	return firstIndex
}

type tableResource struct {
	*tableRequests
	resource dynamic.NamespaceableResourceInterface
}

func (t tableResource) Namespace(name string) dynamic.ResourceInterface {
	return &tableRequests{ResourceInterface: t.resource.Namespace(name), client: t.client, gvr: t.gvr,
		namespace: name}
}

// tableRequests lists and watches a type as tables, or as objects if the server prints no tables.
type tableRequests struct {
	dynamic.ResourceInterface
	client            *TableClient
	gvr               schema.GroupVersionResource
	namespace         string
	tablesUnsupported atomic.Bool
}

func (r *tableRequests) request(options *metav1.ListOptions) *rest.Request {
	return listRequest(r.client.rest, r.gvr, r.namespace).SetHeader("Accept", AcceptTable).
		SpecificallyVersionedParams(options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).
		Param("includeObject", string(metav1.IncludeObject))
}

func (r *tableRequests) List(ctx context.Context,
	options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	page, err := tableOf(r.request(&options).Do(ctx))
	if err != nil {
		return nil, err
	}
	if page == nil {
		r.tablesUnsupported.Store(true)
		return r.ResourceInterface.List(ctx, options)
	}
	r.tablesUnsupported.Store(false)
	firstIndex := 1 // informers request single objects for the resource version
	if options.Limit != 1 {
		firstIndex = r.client.addPage(r.gvr, page,
			options.Continue == "") // the server can have a special order
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": r.gvr.GroupVersion().String(),
		"kind": "List"}}
	list.SetResourceVersion(page.ResourceVersion)
	list.SetContinue(page.Continue)
	list.SetRemainingItemCount(page.RemainingItemCount)
	for i, row := range page.Rows {
		object, err := objectWithRow(row, firstIndex+i)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, *object)
	}
	return list, nil
}

func (r *tableRequests) Get(ctx context.Context, name string, options metav1.GetOptions,
	subresources ...string) (*unstructured.Unstructured, error) {
	page, err := tableOf(listRequest(r.client.rest, r.gvr, r.namespace).Name(name).SetHeader("Accept", AcceptTable).
		Param("includeObject", string(metav1.IncludeObject)).Do(ctx))
	switch {
	case err != nil:
		return nil, err
	case page == nil || len(page.Rows) != 1:
		return r.ResourceInterface.Get(ctx, name, options, subresources...)
	}
	return objectWithRow(page.Rows[0], r.client.addPage(r.gvr, page, false))
}

func objectWithRow(row metav1.TableRow, index int) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(row.Object.Raw, &object.Object); err != nil {
		return nil, fmt.Errorf("a row of the server's table has no object: %w", err)
	}
	if object.Object == nil {
		return nil, errors.New("a row of the server's table has no object")
	}
	cells := make([]any, len(row.Cells))
	copy(cells, row.Cells)
	object.Object[RowField] = map[string]any{"cells": cells, "place": int64(index)}
	return object, nil
}

func (r *tableRequests) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if r.tablesUnsupported.Load() {
		return r.ResourceInterface.Watch(ctx, options)
	}
	options.Watch = true
	body, err := r.request(&options).Stream(ctx)
	if err != nil {
		return nil, err
	}
	return watch.NewStreamWatcher(&tableDecoder{body: body, decoder: json.NewDecoder(body)},
		apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet,
			"ClientWatchDecoding")), nil
}

// tableDecoder decodes watch events. The object of an event is a table with one row.
type tableDecoder struct {
	body    io.ReadCloser
	decoder *json.Decoder
}

func (d *tableDecoder) Close() { d.body.Close() }

func (d *tableDecoder) Decode() (watch.EventType, runtime.Object, error) {
	var event struct {
		Type   watch.EventType
		Object json.RawMessage
	}
	if err := d.decoder.Decode(&event); err != nil {
		return "", nil, err
	}
	if event.Type == watch.Error {
		status := &metav1.Status{}
		return event.Type, status, json.Unmarshal(event.Object, status)
	}
	table, err := readTable(event.Object)
	switch {
	case err != nil:
		return "", nil, err
	case table == nil: // such as a bookmark
		object := &unstructured.Unstructured{}
		return event.Type, object, utiljson.Unmarshal(event.Object, &object.Object)
	case len(table.Rows) != 1:
		return "", nil, fmt.Errorf("the server's table for one object has %d rows", len(table.Rows))
	}
	object, err := objectWithRow(table.Rows[0], 0)
	return event.Type, object, err
}

// rowCells returns the cells of an object's row, or its name if it has no row.
func rowCells(object *unstructured.Unstructured) []any {
	cells, _, _ := unstructured.NestedFieldNoCopy(object.Object, RowField, "cells")
	if cells, ok := cells.([]any); ok && len(cells) > 0 {
		return cells
	}
	return []any{object.GetName()}
}

// RowIndex returns the 1-based position of an object in the server's table, or 0 if it is unknown.
func RowIndex(object *unstructured.Unstructured) int {
	index, _, _ := unstructured.NestedInt64(object.Object, RowField, "place")
	return int(index)
}
