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

// PrintedField is where objects of a Printed client have what the server printed of them. No object has a
// field of this name.
const PrintedField = "crdcache.dev/printed"

// Printed is a dynamic client whose lists and watches bring objects with their rows as the API server prints
// them, in the field PrintedField: with an object's state comes the row of just that state, its deletion
// included. It costs one list and one watch for each type, as without rows. Objects of a server that prints
// no tables come without. It is safe for concurrent use.
type Printed struct {
	dynamic.Interface
	rest rest.Interface

	mu      sync.Mutex
	columns map[schema.GroupVersionResource][]metav1.TableColumnDefinition
}

// NewPrinted returns a client for the server of client.
func NewPrinted(config *rest.Config, httpClient *http.Client, client dynamic.Interface) (*Printed, error) {
	plain, err := NewPlainClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return &Printed{Interface: client, rest: plain,
		columns: map[schema.GroupVersionResource][]metav1.TableColumnDefinition{}}, nil
}

// IsWatchListSemanticsUnSupported tells reflectors to list before they watch: the columns come with a list.
func (p *Printed) IsWatchListSemanticsUnSupported() bool { return true }

// Resource implements dynamic.Interface.
func (p *Printed) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	all := p.Interface.Resource(gvr)
	return printedType{&printedRequests{ResourceInterface: all, client: p, gvr: gvr}, all}
}

// Rows are those of a type that has been listed: where the server printed none they show name and age.
func (p *Printed) Rows(gvr schema.GroupVersionResource) Rows {
	p.mu.Lock()
	defer p.mu.Unlock()
	if columns := p.columns[gvr]; columns != nil {
		return NewPrintedRows(columns, printedCells)
	}
	return NewRows(nil)
}

func (p *Printed) learn(gvr schema.GroupVersionResource, columns []metav1.TableColumnDefinition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(columns) > 0 {
		p.columns[gvr] = columns
	}
}

// printedType is a type in all namespaces.
type printedType struct {
	*printedRequests
	all dynamic.NamespaceableResourceInterface
}

// Namespace implements dynamic.NamespaceableResourceInterface.
func (t printedType) Namespace(name string) dynamic.ResourceInterface {
	return &printedRequests{ResourceInterface: t.all.Namespace(name), client: t.client, gvr: t.gvr,
		namespace: name}
}

// printedRequests lists and watches a type as tables. A server that prints no tables is asked for objects.
type printedRequests struct {
	dynamic.ResourceInterface
	client    *Printed
	gvr       schema.GroupVersionResource
	namespace string
	plain     atomic.Bool // the server prints no tables
}

func (r *printedRequests) request(options *metav1.ListOptions) *rest.Request {
	return tableRequest(r.client.rest, r.gvr, r.namespace).
		SpecificallyVersionedParams(options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"}).
		Param("includeObject", string(metav1.IncludeObject))
}

// List implements dynamic.ResourceInterface.
func (r *printedRequests) List(ctx context.Context,
	options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	body, err := bodyOf(r.request(&options).Do(ctx))
	if err != nil {
		return nil, err
	}
	page, err := readTable(body)
	if err != nil {
		return nil, err
	}
	if page == nil {
		r.plain.Store(true)
		return r.ResourceInterface.List(ctx, options)
	}
	r.plain.Store(false)
	r.client.learn(r.gvr, page.ColumnDefinitions)
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": r.gvr.GroupVersion().String(),
		"kind": "List"}}
	list.SetResourceVersion(page.ResourceVersion)
	list.SetContinue(page.Continue)
	list.SetRemainingItemCount(page.RemainingItemCount)
	whole := options.Continue == "" && page.Continue == ""
	for i, row := range page.Rows {
		place := 0
		if whole {
			place = i + 1 // the server prints some types in an order of their own
		}
		object, err := printedObject(row, place)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, *object)
	}
	return list, nil
}

// printedObject is the object that a row shows, with the row.
func printedObject(row metav1.TableRow, place int) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(row.Object.Raw, &object.Object); err != nil {
		return nil, fmt.Errorf("a row of the server's table has no object: %w", err)
	}
	if object.Object == nil {
		return nil, errors.New("a row of the server's table has no object")
	}
	cells := make([]any, len(row.Cells))
	copy(cells, row.Cells)
	object.Object[PrintedField] = map[string]any{"cells": cells, "place": int64(place)}
	return object, nil
}

// Watch implements dynamic.ResourceInterface.
func (r *printedRequests) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if r.plain.Load() {
		return r.ResourceInterface.Watch(ctx, options)
	}
	options.Watch = true
	body, err := r.request(&options).Stream(ctx)
	if err != nil {
		return nil, err
	}
	return watch.NewStreamWatcher(&tableEvents{body: body, json: json.NewDecoder(body)},
		apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet,
			"ClientWatchDecoding")), nil
}

// tableEvents decodes events of which each has a table with one row.
type tableEvents struct {
	body io.ReadCloser
	json *json.Decoder
}

// Close implements watch.Decoder.
func (d *tableEvents) Close() { d.body.Close() }

// Decode implements watch.Decoder.
func (d *tableEvents) Decode() (watch.EventType, runtime.Object, error) {
	var event struct {
		Type   watch.EventType
		Object json.RawMessage
	}
	if err := d.json.Decode(&event); err != nil {
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
	case table == nil: // what the server could not print, as some bookmarks
		object := &unstructured.Unstructured{}
		return event.Type, object, utiljson.Unmarshal(event.Object, &object.Object)
	case len(table.Rows) != 1:
		return "", nil, fmt.Errorf("the server's table for one object has %d rows", len(table.Rows))
	}
	object, err := printedObject(table.Rows[0], 0)
	return event.Type, object, err
}

// printedCells are the cells of the row that came with an object; without one, its name.
func printedCells(object *unstructured.Unstructured) []any {
	cells, _, _ := unstructured.NestedFieldNoCopy(object.Object, PrintedField, "cells")
	if cells, ok := cells.([]any); ok && len(cells) > 0 {
		return cells
	}
	return []any{object.GetName()}
}

// Place is where among others the server printed an object; 0 where that is not known.
func Place(object *unstructured.Unstructured) int {
	place, _, _ := unstructured.NestedInt64(object.Object, PrintedField, "place")
	return int(place)
}
