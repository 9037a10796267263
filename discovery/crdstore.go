package discovery

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery/crd"
)

// crdObject is what is kept of a CustomResourceDefinition object between the wire and the state. The
// schemas, nearly all of it, are gone.
type crdObject struct {
	metav1.ObjectMeta
	definition *crd.Definition
	err        error // why there is no definition
}

// crdStore hands what a reflector sees to a Tracker. It keeps nothing itself.
type crdStore struct {
	replace func([]*crd.Definition) error
	put     func(*crd.Definition)
	drop    func(*crd.Definition)
	// broken is told about objects that cannot be understood. They are passed over.
	broken func(error)
}

var _ cache.TransformingStore = (*crdStore)(nil)

// Transformer lets the reflector shrink each object as it arrives, before a whole list is collected.
func (s *crdStore) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return shrinkCRD(obj), nil }
}

// shrinkCRD accepts its own results: under watch-list it is applied twice.
func shrinkCRD(obj any) *crdObject {
	switch o := obj.(type) {
	case *crdObject:
		return o
	case *unstructured.Unstructured:
		d, err := crd.Summary(o.Object)
		return &crdObject{
			ObjectMeta: metav1.ObjectMeta{Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()},
			definition: d, err: err,
		}
	case cache.DeletedFinalStateUnknown:
		return shrinkCRD(o.Obj)
	}
	return &crdObject{err: fmt.Errorf("unexpected object %T", obj)}
}

func (s *crdStore) Add(obj any) error    { return s.with(obj, s.put) }
func (s *crdStore) Update(obj any) error { return s.with(obj, s.put) }
func (s *crdStore) Delete(obj any) error { return s.with(obj, s.drop) }
func (s *crdStore) Resync() error        { return nil }

func (s *crdStore) with(obj any, do func(*crd.Definition)) error {
	o := shrinkCRD(obj)
	if o.err != nil {
		s.broken(o.err)
		return nil // an error would only make the reflector log
	}
	do(o.definition)
	return nil
}

// Replace takes a complete list. Its error makes the reflector list again.
func (s *crdStore) Replace(list []any, _ string) error {
	definitions := make([]*crd.Definition, 0, len(list))
	var problems []error
	for _, obj := range list {
		if o := shrinkCRD(obj); o.err != nil {
			problems = append(problems, o.err)
		} else {
			definitions = append(definitions, o.definition)
		}
	}
	if err := s.replace(definitions); err != nil {
		return err
	}
	if len(problems) > 0 {
		s.broken(errors.Join(problems...))
	}
	return nil
}
