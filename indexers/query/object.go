package query

import (
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/jsontext"
)

// packedObject is an object that is stored as JSON, such as a dynamicinformer.PackedObject.
type packedObject interface {
	Labels() labels.Labels
	ReadJSON(read func(json []byte) error) error
	Unstructured() *unstructured.Unstructured
	Decoded() *unstructured.Unstructured
}

// objectOf returns the decoded item, or nil if it is not a Kubernetes object.
func objectOf(item any) *unstructured.Unstructured {
	switch o := item.(type) {
	case packedObject:
		return o.Unstructured()
	case *unstructured.Unstructured:
		return o
	case nil:
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
	if err != nil {
		return nil
	}
	return &unstructured.Unstructured{Object: content}
}

// labelsOf returns the labels of an item, without decoding it if possible.
func labelsOf(item any) labels.Labels {
	switch o := item.(type) {
	case packedObject:
		return o.Labels()
	case interface{ GetLabels() map[string]string }:
		return labels.Set(o.GetLabels())
	}
	return labels.Set(nil)
}

// textsOf returns the strings, numbers and booleans at a path, as text. It is incomplete if the meter's
// context ends.
func textsOf(m *workMeter, item any, path *jsonpath.Path) (texts []string) {
	add := func(v any) bool {
		if text, ok := textOf(v); ok {
			texts = append(texts, text)
		}
		return true
	}
	if o, ok := item.(packedObject); ok && o.Decoded() == nil {
		err := o.ReadJSON(func(json []byte) error {
			return path.FindJSONContext(m.ctx, json, func(v jsonpath.Value) bool { return add(v.Any()) })
		})
		if err == nil || m.stopOn(m.ctx.Err()) {
			return texts
		}
		texts = nil // invalid JSON
	}
	u := objectOf(item)
	if u == nil {
		return nil
	}
	m.stopOn(path.FindContext(m.ctx, u.Object, add))
	return texts
}

// textOf formats a scalar. It returns false for lists and maps.
func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool, int64, int:
		return fmt.Sprint(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}

// itemTester tests one item after the other without allocations per item.
type itemTester struct {
	filter    *jsonpath.Filter
	meter     *workMeter
	isMatch   bool
	matchRead func(json []byte) error // matchJSON, allocated once
}

func (i *itemTester) matchJSON(json []byte) (err error) {
	i.isMatch, err = i.filter.MatchJSONContext(i.meter.ctx, json)
	return err
}

func (i *itemTester) decoded(u *unstructured.Unstructured) bool {
	if u == nil {
		return false
	}
	match, err := i.filter.MatchContext(i.meter.ctx, u.Object)
	return !i.meter.stopOn(err) && match
}

// matches tests an item. It returns false for an unreadable item, and after the end of the meter's context.
func (i *itemTester) matches(item any) bool {
	o, ok := item.(packedObject)
	if !ok {
		return i.decoded(objectOf(item))
	}
	if u := o.Decoded(); u != nil {
		return i.decoded(u)
	}
	i.isMatch = false
	err := o.ReadJSON(i.matchRead)
	var syntax *jsontext.SyntaxError
	switch {
	case err == nil:
		return i.isMatch
	case errors.As(err, &syntax): // the decoder can be more lenient than jsonpath
		return i.decoded(o.Unstructured())
	}
	i.meter.stopOn(i.meter.ctx.Err())
	return false
}
