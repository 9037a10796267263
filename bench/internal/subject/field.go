package subject

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// indexName is the index of Reader.AddIndex. indexField is its field, which is unique.
const indexName = "secret"

var indexField = []string{"spec", "secretName"}

// IndexValue returns an object's value in that index.
func IndexValue(object *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(object.Object, indexField...)
	return value
}

// indexFunc is a hand-written index function.
func indexFunc(object any) ([]string, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		if value := IndexValue(u); value != "" {
			return []string{value}, nil
		}
	}
	return nil, nil
}

// readFields reads a field of spec and one of status. Its result keeps the compiler from removing the reads.
func readFields(object any) int {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return 0
	}
	conditions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	list, _ := conditions.([]any)
	return len(IndexValue(u)) + len(list)
}
