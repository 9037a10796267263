package query

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// objectOf gives an item decoded; nil for what is no Kubernetes object.
func objectOf(item any) *unstructured.Unstructured {
	switch o := item.(type) {
	case dynamicinformer.PackedObject:
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

// labelsOf gives the labels of an item, without decoding it where that can be done.
func labelsOf(item any) labels.Labels {
	switch o := item.(type) {
	case dynamicinformer.PackedObject:
		return o.Labels()
	case interface{ GetLabels() map[string]string }:
		return labels.Set(o.GetLabels())
	}
	return labels.Set(nil)
}

// textsOf returns the texts, numbers and booleans that a path leads to in an item, as text. Once the meter's
// context has ended, the result is incomplete.
func textsOf(m *meter, item any, path *jsonpath.Path) (texts []string) {
	ctx := m.context()
	if o, ok := item.(dynamicinformer.PackedObject); ok && o.Decoded() == nil {
		err := o.View(func(json []byte) error {
			return path.FindJSONContext(ctx, json, func(v jsonpath.Value) bool {
				if text, ok := textOf(v.Any()); ok {
					texts = append(texts, text)
				}
				return true
			})
		})
		if err == nil || m.failed(ctx.Err()) {
			return texts
		}
		texts = nil // damaged: what is left of it
	}
	u := objectOf(item)
	if u == nil {
		return nil
	}
	err := path.FindContext(ctx, u.Object, func(v any) bool {
		if text, ok := textOf(v); ok {
			texts = append(texts, text)
		}
		return true
	})
	m.failed(err)
	return texts
}

// textOf writes a value that is neither a list nor a map.
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

// tester reports whether a condition holds for an object. The error is the cause of the context's end, or a
// *jsonpath.SyntaxError.
type tester interface {
	MatchContext(ctx context.Context, obj any) (bool, error)
	MatchJSONContext(ctx context.Context, raw []byte) (bool, error)
}

// existence holds where a path leads to something.
type existence struct{ path *jsonpath.Path }

func (e existence) MatchContext(ctx context.Context, obj any) (found bool, err error) {
	err = e.path.FindContext(ctx, obj, func(any) bool {
		found = true
		return false
	})
	return found, err
}

func (e existence) MatchJSONContext(ctx context.Context, raw []byte) (found bool, err error) {
	err = e.path.FindJSONContext(ctx, raw, func(jsonpath.Value) bool {
		found = true
		return false
	})
	return found, err
}

// compileCondition reads a condition as such, or as a path. When it is neither, the error is about what it
// looks like.
func compileCondition(text string) (tester, error) {
	filter, err := jsonpath.CompileFilter(text)
	if err == nil {
		return filter, nil
	}
	path, pathErr := jsonpath.Compile(text)
	if pathErr == nil {
		return existence{path}, nil
	}
	return nil, err
}

// probe tests one item after the other. What it needs for a test is made once.
type probe struct {
	test  tester
	meter *meter
	match bool
	read  func(json []byte) error // look
}

func newProbe(test tester, m *meter) *probe {
	p := &probe{test: test, meter: m}
	p.read = p.look
	return p
}

func (p *probe) look(json []byte) (err error) {
	p.match, err = p.test.MatchJSONContext(p.meter.context(), json)
	return err
}

// decoded tests a decoded object.
func (p *probe) decoded(u *unstructured.Unstructured) bool {
	if u == nil {
		return false
	}
	match, err := p.test.MatchContext(p.meter.context(), u.Object)
	return !p.meter.failed(err) && match
}

// holds tests an item. One that cannot be read does not fit. Once the meter's context has ended, no item
// fits.
func (p *probe) holds(item any) bool {
	o, ok := item.(dynamicinformer.PackedObject)
	if !ok {
		return p.decoded(objectOf(item))
	}
	if u := o.Decoded(); u != nil {
		return p.decoded(u)
	}
	p.match = false
	err := o.View(p.read)
	var syntax *jsonpath.SyntaxError
	switch {
	case err == nil:
		return p.match
	case errors.As(err, &syntax): // the cached JSON may be valid for its decoder alone
		return p.decoded(o.Unstructured())
	}
	p.meter.failed(p.meter.context().Err())
	return false
}
