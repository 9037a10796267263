package print

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

// Order is the order of --sort-by, as in kubectl: by the first value of a JSONPath. Objects without a value
// come first. Numbers and quantities are compared by amount, other texts in natural order.
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

// sortValue returns the value by which an object is sorted, or nil. It is not safe for concurrent use.
func (o *Order) sortValue(object map[string]any) (any, error) {
	results, err := o.path.FindResults(object)
	if err != nil {
		return nil, fmt.Errorf("--sort-by %s: %w", o.text, err)
	}
	if len(results) == 0 || len(results[0]) == 0 || !results[0][0].CanInterface() {
		return nil, nil
	}
	value := results[0][0].Interface()
	switch value.(type) {
	case map[string]any, []any:
		return nil, fmt.Errorf(
			"--sort-by %s: the value is an object or a list, which cannot be sorted: select a field in it",
			o.text)
	}
	return value, nil
}

// Sorted returns items in the order of their decoded objects. If no object has a value it returns an error,
// because the path is probably wrong.
func Sorted[T any](o *Order, items []T, decode func(T) (*unstructured.Unstructured, error)) ([]T, error) {
	type itemValue struct {
		item  T
		value any
	}
	values, foundAny := make([]itemValue, len(items)), false
	for i, item := range items {
		object, err := decode(item)
		if err != nil {
			return nil, err
		}
		value, err := o.sortValue(object.Object)
		if err != nil {
			return nil, err
		}
		values[i] = itemValue{item, value}
		foundAny = foundAny || value != nil
	}
	if len(items) > 0 && !foundAny {
		return nil, fmt.Errorf("--sort-by %s: no object has such a field", o.text)
	}
	slices.SortStableFunc(values, func(a, b itemValue) int { return compareValues(a.value, b.value) })
	sorted := make([]T, len(values))
	for i, v := range values {
		sorted[i] = v.item
	}
	return sorted, nil
}

// compareValues orders nil, booleans, numbers and texts.
func compareValues(a, b any) int {
	if rank := cmp.Compare(typeRank(a), typeRank(b)); rank != 0 {
		return rank
	}
	switch a := a.(type) {
	case bool:
		return cmp.Compare(numericValue(a), numericValue(b))
	case string:
		return compareTexts(a, b.(string))
	case nil:
		return 0
	}
	if a, ok := a.(int64); ok { // exact beyond the precision of a float
		if b, ok := b.(int64); ok {
			return cmp.Compare(a, b)
		}
	}
	return cmp.Compare(numericValue(a), numericValue(b))
}

func typeRank(value any) int {
	switch value.(type) {
	case nil:
		return 0
	case bool:
		return 1
	case string:
		return 3
	}
	return 2
}

func numericValue(value any) float64 {
	switch v := value.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	case bool:
		if v {
			return 1
		}
	}
	return 0
}

func compareTexts(a, b string) int {
	if x, err := resource.ParseQuantity(a); err == nil {
		if y, err := resource.ParseQuantity(b); err == nil {
			return x.Cmp(y)
		}
	}
	return compareNatural(a, b)
}

// compareNatural compares runs of digits as numbers: node-9 comes before node-10.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		digitsA, digitsB := countLeadingDigits(a), countLeadingDigits(b)
		if digitsA > 0 && digitsB > 0 {
			m, n := strings.TrimLeft(a[:digitsA], "0"), strings.TrimLeft(b[:digitsB], "0")
			if c := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n), cmp.Compare(digitsA,
				digitsB)); c != 0 {
				return c
			}
			a, b = a[digitsA:], b[digitsB:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func countLeadingDigits(text string) int {
	return len(text) - len(strings.TrimLeft(text, "0123456789"))
}
