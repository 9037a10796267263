package discovery

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

// unreadable is a CustomResourceDefinition that is there and cannot be understood.
type unreadable struct {
	gr  schema.GroupResource
	uid types.UID
	err error
}

// unreadable returns what is known of an object without a definition. The API server keeps the name of each
// CustomResourceDefinition at its plural, a dot and its group.
func (o *crdObject) unreadable() unreadable {
	plural, group, _ := strings.Cut(o.Name, ".")
	return unreadable{gr: schema.GroupResource{Group: group, Resource: plural}, uid: o.UID, err: o.err}
}

// crdStore hands what a reflector sees to a Tracker. It keeps nothing itself.
type crdStore struct {
	replace func([]*crd.Definition, []unreadable) error
	put     func(*crd.Definition)
	drop    func(schema.GroupResource)
	// broken is told of an added or changed object that cannot be understood.
	broken func(unreadable)
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
			ObjectMeta: metav1.ObjectMeta{Name: o.GetName(), UID: o.GetUID(),
				ResourceVersion: o.GetResourceVersion()},
			definition: d, err: err,
		}
	case cache.DeletedFinalStateUnknown:
		return shrinkCRD(o.Obj)
	}
	return &crdObject{err: fmt.Errorf("unexpected object %T", obj)}
}

func (s *crdStore) Add(obj any) error { return s.Update(obj) }
func (s *crdStore) Resync() error     { return nil }

// Update takes one object. What cannot be understood is no error, which would only make the reflector log it.
func (s *crdStore) Update(obj any) error {
	if o := shrinkCRD(obj); o.err != nil {
		s.broken(o.unreadable())
	} else {
		s.put(o.definition)
	}
	return nil
}

// Delete takes the deletion of an object, for which its name is enough.
func (s *crdStore) Delete(obj any) error {
	s.drop(shrinkCRD(obj).unreadable().gr)
	return nil
}

// Replace takes a complete list. Its error makes the reflector list again.
func (s *crdStore) Replace(list []any, _ string) error {
	definitions := make([]*crd.Definition, 0, len(list))
	var rest []unreadable
	for _, obj := range list {
		if o := shrinkCRD(obj); o.err != nil {
			rest = append(rest, o.unreadable())
		} else {
			definitions = append(definitions, o.definition)
		}
	}
	return s.replace(definitions, rest)
}
