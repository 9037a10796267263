package conformance

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// next receives the next event of a watch, and returns its description.
func next(w watch.Interface) string {
	event, open := <-w.ResultChan()
	if !open {
		return "end"
	}
	switch obj := event.Object.(type) {
	case *unstructured.Unstructured:
		return fmt.Sprint(event.Type, " ", obj.GetName(), value(obj))
	case *metav1.Status:
		return fmt.Sprint(event.Type, " ", obj.Code)
	}
	return fmt.Sprintf("%s %T", event.Type, event.Object)
}
