package query

import (
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

// textsOf gives the texts, numbers and booleans that a path leads to in an item, as text.
func textsOf(item any, path *jsonpath.Path) (texts []string) {
	if o, ok := item.(dynamicinformer.PackedObject); ok && o.Decoded() == nil {
		err := o.View(func(json []byte) error {
			return path.FindJSON(json, func(v jsonpath.Value) bool {
				if text, ok := textOf(v.Any()); ok {
					texts = append(texts, text)
				}
				return true
			})
		})
		if err == nil {
			return texts
		}
		texts = nil // damaged: what is left of it
	}
	u := objectOf(item)
	if u == nil {
		return nil
	}
	path.Find(u.Object, func(v any) bool {
		if text, ok := textOf(v); ok {
			texts = append(texts, text)
		}
		return true
	})
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

// tester tells whether a condition holds for an object.
type tester interface {
	Match(obj any) bool
	MatchJSON(raw []byte) (bool, error)
}

// existence holds where a path leads to something.
type existence struct{ path *jsonpath.Path }

func (e existence) Match(obj any) bool {
	_, ok := e.path.First(obj)
	return ok
}

func (e existence) MatchJSON(raw []byte) (bool, error) {
	_, ok, err := e.path.FirstJSON(raw)
	return ok, err
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

// probe tests items, one after the other: what it needs for that is made once.
type probe struct {
	test  tester
	match bool
	read  func(json []byte) error // look
}

func newProbe(test tester) *probe {
	p := &probe{test: test}
	p.read = p.look
	return p
}

func (p *probe) look(json []byte) (err error) {
	p.match, err = p.test.MatchJSON(json)
	return err
}

// holds tests an item. One that cannot be read does not fit.
func (p *probe) holds(item any) bool {
	o, ok := item.(dynamicinformer.PackedObject)
	if !ok {
		u := objectOf(item)
		return u != nil && p.test.Match(u.Object)
	}
	if u := o.Decoded(); u != nil {
		return p.test.Match(u.Object)
	}
	p.match = false
	if err := o.View(p.read); err != nil {
		var syntax *jsonpath.SyntaxError
		// What is kept may be valid for its decoder alone.
		return errors.As(err, &syntax) && p.test.Match(o.Unstructured().Object)
	}
	return p.match
}
