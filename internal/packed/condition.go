package packed

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// Condition selects objects by their labels and a filter. An unset field selects all objects. A nil
// *Condition selects none.
type Condition struct {
	Labels labels.Selector
	Filter *jsonpath.Filter
}

// Reduces reports whether the Pruner is a keep-list that reduces a packed or decoded object.
func (p *Pruner) Reduces(object any) bool {
	return p != nil && p.root.keeps && !p.wholeCondition.matches(object)
}

// matches reports whether the condition selects a packed or decoded object. It selects objects that the
// filter cannot read, because they are too deep.
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
		if c.Filter == nil {
			return true
		}
		err := o.PeekJSON(func(json []byte) (err error) {
			selected, err = c.Filter.MatchJSONContext(context.Background(), json)
			return err
		})
		return selected || err != nil
	case *unstructured.Unstructured:
		return (c.Labels == nil || c.Labels.Matches(labels.Set(o.GetLabels()))) && c.matchesBody(o.Object)
	}
	return false
}

// matchesBody reports whether the filter selects a decoded object.
func (c *Condition) matchesBody(body map[string]any) bool {
	return c.Filter == nil || c.Filter.Match(body)
}

var errReadsAnyField = errors.New("the condition can read any field: begin its paths with the name of a field")

// paths returns the fields that the condition reads.
func (c *Condition) paths() (paths []Path, err error) {
	if c == nil || c.Filter == nil {
		return nil, nil
	}
	var elements []Path // only their existence is read
	for _, read := range c.Filter.Reads() {
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

// pathOf returns the path of the results of steps. Unless isExact, it is that of a value around.
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

// ParsePath parses the path of a field: names and [*] of the language of paths. It accepts .* as well, which
// a Pruner refuses.
func ParsePath(text string) (Path, error) {
	if text == "" {
		return nil, nil
	}
	parsed, err := jsonpath.Compile(text)
	if err != nil {
		return nil, err
	}
	var path Path
	for _, step := range parsed.Steps() {
		s := step.Selectors[0]
		next := Step{Key: s.Name, Each: s.Kind == jsonpath.SelectElements,
			Any: s.Kind == jsonpath.SelectMembers}
		isField := s.Kind == jsonpath.SelectName || next.Each || next.Any
		if step.Recursive || len(step.Selectors) > 1 || !isField {
			return nil, errors.New("the path of a field has only names and [*]")
		}
		path = append(path, next)
	}
	return path, nil
}
