package print

import (
	"fmt"
	"sort"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

// Order is the order of --sort-by: by the first value of a JSONPath. Where kubectl 1.37 sorts, the order is
// the same, also of objects without a value and of equal values. In addition, it sorts booleans and values of
// different types.
type Order struct {
	text string
	path *jsonpath.JSONPath
}

// ParseOrder parses a JSONPath, with or without {} and the first dot.
func ParseOrder(text string) (*Order, error) {
	expression, err := completePath(text)
	if err != nil {
		return nil, err
	}
	path := jsonpath.New("sort-by").AllowMissingKeys(true)
	if err := path.Parse(expression); err != nil {
		return nil, err
	}
	return &Order{text, path}, nil
}

type sortValue struct {
	value any
	found bool
}

// sortValue is not safe for concurrent use.
func (o *Order) sortValue(object map[string]any) (sortValue, error) {
	results, err := o.path.FindResults(object)
	if err != nil {
		return sortValue{}, fmt.Errorf("--sort-by %s: %w", o.text, err)
	}
	if len(results) == 0 || len(results[0]) == 0 {
		return sortValue{}, nil
	}
	if !results[0][0].CanInterface() {
		return sortValue{found: true}, nil
	}
	return sortValue{results[0][0].Interface(), true}, nil
}

// sorter sorts items with the algorithm of kubectl, whose result for equal and missing values depends on it.
type sorter[T any] struct {
	items    []T
	values   []sortValue
	unsorted bool // a value is an object or a list
}

func (s *sorter[T]) Len() int { return len(s.items) }

func (s *sorter[T]) Swap(i, j int) {
	s.items[i], s.items[j] = s.items[j], s.items[i]
	s.values[i], s.values[j] = s.values[j], s.values[i]
}

func (s *sorter[T]) Less(i, j int) bool {
	a, b := s.values[i], s.values[j]
	switch {
	case !a.found:
		return true
	case !b.found, b.value == nil:
		return false
	case a.value == nil:
		return true
	}
	rankA, rankB := typeRank(a.value), typeRank(b.value)
	s.unsorted = s.unsorted || rankA == unsortable || rankB == unsortable
	if rankA != rankB {
		return rankA < rankB
	}
	return lessValue(a.value, b.value)
}

// Sorted returns items in the order of their decoded objects. If no object has a value it returns an error,
// because the path is probably wrong.
func Sorted[T any](o *Order, items []T, decode func(T) (*unstructured.Unstructured, error)) ([]T, error) {
	s := &sorter[T]{items: append([]T(nil), items...)}
	foundAny := false
	for _, item := range items {
		object, err := decode(item)
		if err != nil {
			return nil, err
		}
		value, err := o.sortValue(object.Object)
		if err != nil {
			return nil, err
		}
		s.values = append(s.values, value)
		foundAny = foundAny || value.found
	}
	if len(items) > 0 && !foundAny {
		return nil, fmt.Errorf("--sort-by %s: no object has such a field", o.text)
	}
	sort.Sort(s)
	if s.unsorted {
		return nil, fmt.Errorf(
			"--sort-by %s: the value is an object or a list, which cannot be sorted: select a field in it",
			o.text)
	}
	return s.items, nil
}

const unsortable = 3

// typeRank orders booleans, numbers and texts.
func typeRank(value any) int {
	switch value.(type) {
	case bool:
		return 0
	case string:
		return 2
	case map[string]any, []any:
		return unsortable
	}
	return 1
}

// lessValue compares two values of one rank. Texts are compared by bytes, unless both are quantities.
func lessValue(a, b any) bool {
	switch a := a.(type) {
	case bool:
		return !a && b.(bool)
	case string:
		return lessText(a, b.(string))
	case int64: // exact beyond the precision of a float
		if b, ok := b.(int64); ok {
			return a < b
		}
	}
	return numericValue(a) < numericValue(b)
}

func numericValue(value any) float64 {
	switch v := value.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

func lessText(a, b string) bool {
	if x, err := resource.ParseQuantity(a); err == nil {
		if y, err := resource.ParseQuantity(b); err == nil {
			return x.Cmp(y) < 0
		}
	}
	return a < b
}
