//go:build !oldkubernetes

package conformance_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer/conformance"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestTypedWrapper plays a scenario with the typed informers that client-go has since 0.37.
func TestTypedWrapper(t *testing.T) {
	play := func(s *conformance.Stage) { playTyped(t, s) }
	conformance.RunScenario(t, harness.Config(t), "typed wrapper", play, subjects()...)
}

func playTyped(t *testing.T, s *conformance.Stage) {
	s.Put("a", "1")
	s.Make(0)
	typed := cache.NewTypedSharedIndexInformer[*unstructured.Unstructured](s.Informer)
	r := s.Handle()
	deleted := make(chan string, 1)
	_, handlerErr := typed.AddTypedEventHandler(
		cache.TypedResourceEventHandlerFuncs[*unstructured.Unstructured]{
			DeleteFunc: func(obj cache.DeletedObject[*unstructured.Unstructured]) {
				deleted <- obj.GetName()
			},
		})
	indexErr := typed.AddTypedIndexers(cache.TypedIndexers[*unstructured.Unstructured]{
		"value": func(obj *unstructured.Unstructured) ([]string, error) {
			value, _, err := unstructured.NestedString(obj.Object, "data", "value")
			return []string{value}, err
		},
	})
	if err := errors.Join(handlerErr, indexErr); err != nil {
		t.Error(err)
	}
	s.Run()
	s.Settle()
	found, err := typed.GetTypedIndexer().ByTypedIndex("value", "1")
	s.Note("found: %d %v", len(found), err)
	s.Delete("a")
	s.Settle()
	s.Note("deleted: %s", <-deleted)
	s.NoteTrace("", r)
}
