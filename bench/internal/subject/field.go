package subject

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// indexName is the index that Reader.AddIndex adds, and indexField the unique field of a certificate that it
// is over.
const indexName = "secret"

var indexField = []string{"spec", "secretName"}

// IndexValue returns the value that an object has in that index.
func IndexValue(object *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(object.Object, indexField...)
	return value
}

// indexFunc is the index function that a user writes by hand.
func indexFunc(object any) ([]string, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		if value := IndexValue(u); value != "" {
			return []string{value}, nil
		}
	}
	return nil, nil
}

// readFields reads a field of the spec and one of the status. The result only keeps the compiler from leaving
// the work out.
func readFields(object any) int {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return 0
	}
	conditions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	list, _ := conditions.([]any)
	return len(IndexValue(u)) + len(list)
}
