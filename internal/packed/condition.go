package packed

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/internal/expression"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/jsontext"
)

// Condition selects objects by their labels, a filter and an expression. An unset field selects all objects.
// A nil *Condition selects none.
type Condition struct {
	Labels     labels.Selector
	Filter     *jsonpath.Filter
	Expression expression.Expression
}

// Reduces reports whether the Pruner is a keep-list that has removed fields of a packed or decoded object, as
// far as it had any.
func (p *Pruner) Reduces(object any) bool {
	return p != nil && p.root.keeps && !p.wholeCondition.matches(object)
}

// matches reports whether the condition selects a packed or decoded object. It selects objects that the
// filter cannot read, because they are too deep, and those on which the expression fails.
func (c *Condition) matches(object any) (selected bool) {
	if c == nil {
		return false
	}
	switch o := object.(type) {
	case *MetadataReader:
		return c.matches(o.Object)
	case *Object:
		if c.Labels != nil && !c.Labels.Matches(o.Labels()) {
			return false
		}
		if original := o.info.unpackableObject; original != nil {
			return c.matchesBody(original.Object)
		}
		if c.Filter == nil && c.Expression == nil {
			return true
		}
		err := o.PeekJSON(func(json []byte) (err error) {
			if selected, err = true, nil; c.Filter != nil {
				selected, err = c.Filter.MatchJSONContext(context.Background(), json)
			}
			if err == nil && selected && c.Expression != nil {
				var body map[string]any
				body, err = bodyDecoder.Decode(json)
				selected = err == nil && c.matchesExpression(body)
			}
			return err
		})
		return selected || err != nil
	case *unstructured.Unstructured:
		return (c.Labels == nil || c.Labels.Matches(labels.Set(o.GetLabels()))) && c.matchesBody(o.Object)
	}
	return false
}

// bodyDecoder decodes objects for expressions.
var bodyDecoder = jsontext.NewDecoder()

// matchesBody reports whether the filter and the expression select a decoded object.
func (c *Condition) matchesBody(body map[string]any) bool {
	return (c.Filter == nil || c.Filter.Match(body)) && c.matchesExpression(body)
}

// matchesExpression reports whether the expression selects a decoded object, or fails.
func (c *Condition) matchesExpression(body map[string]any) bool {
	if c.Expression == nil {
		return true
	}
	result, err := c.Expression.Eval(context.Background(), body)
	return err != nil || result == true
}

var errReadsAnyField = errors.New("the condition can read any field: begin its paths with the name of a field")

// paths returns the fields that the condition reads.
func (c *Condition) paths() (paths []Path, err error) {
	if c == nil {
		return nil, nil
	}
	var reads []jsonpath.Read
	if c.Filter != nil {
		reads = c.Filter.Reads()
	}
	if c.Expression != nil {
		reads = slices.Concat(reads, c.Expression.Reads())
	}
	var elements []Path // only their existence is read
	for _, read := range reads {
		path, isExact := pathOf(read.Steps)
		if n := len(path); isExact && !read.Whole && n > 0 && path[n-1].Each {
			elements = append(elements, path)
			continue
		}
		paths = append(paths, path)
	}
	for _, path := range elements {
		readsBelow := func(p Path) bool { return len(p) > len(path) && slices.Equal(p[:len(path)], path) }
		if !slices.ContainsFunc(paths, readsBelow) { // which would keep the elements
			paths = append(paths, path)
		}
	}
	for i, path := range paths {
		for len(path) > 0 && path[len(path)-1].Each {
			path = path[:len(path)-1]
		}
		if paths[i] = path; len(path) == 0 || path[0].Each {
			return nil, errReadsAnyField
		}
	}
	return paths, nil
}

// pathOf returns the path of the results of steps. If isExact is false, it is the path of a value around
// them.
func pathOf(steps []jsonpath.Step) (path Path, isExact bool) {
	for _, step := range steps {
		if step.Recursive || len(step.Selectors) != 1 {
			return path, false
		}
		if s := step.Selectors[0]; s.Kind == jsonpath.SelectName {
			path = append(path, Step{Key: s.Name})
		} else {
			path = append(path, Step{Each: true}) // keeps a map at this place whole
		}
	}
	return path, true
}
