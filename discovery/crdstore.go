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

// crdObject contains the part of a CustomResourceDefinition that the state needs, without schemas.
type crdObject struct {
	metav1.ObjectMeta
	definition *crd.Definition
	err        error // why there is no definition
}

// unreadableCRD is an existing CustomResourceDefinition that cannot be decoded.
type unreadableCRD struct {
	gr  schema.GroupResource
	uid types.UID
	err error
}

// unreadable returns the identity of an object without a definition. The API server requires that the name of
// a CustomResourceDefinition is its plural, a dot and its group.
func (o *crdObject) unreadable() unreadableCRD {
	plural, group, _ := strings.Cut(o.Name, ".")
	return unreadableCRD{gr: schema.GroupResource{Group: group, Resource: plural}, uid: o.UID, err: o.err}
}

// crdEvents passes the events of a reflector to a Tracker. It stores nothing.
type crdEvents struct {
	onList       func([]*crd.Definition, []unreadableCRD) error
	onDefinition func(*crd.Definition)
	onDeleted    func(schema.GroupResource)
	// setUnreadable is called with an added or changed object that cannot be decoded.
	setUnreadable func(unreadableCRD)
}

var _ cache.TransformingStore = (*crdEvents)(nil)

// Transformer shrinks each object as it arrives, before a list is complete.
func (s *crdEvents) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return shrinkCRD(obj), nil }
}

// shrinkCRD decodes a definition without schemas. It accepts its own results, because it is applied twice to
// the objects of a watch-list.
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

func (s *crdEvents) Add(obj any) error { return s.Update(obj) }
func (s *crdEvents) Resync() error     { return nil }

// Update processes an added or changed object. It passes a decoding error to setUnreadable instead of
// returning it, because the reflector would only log it.
func (s *crdEvents) Update(obj any) error {
	if o := shrinkCRD(obj); o.err != nil {
		s.setUnreadable(o.unreadable())
	} else {
		s.onDefinition(o.definition)
	}
	return nil
}

// Delete processes the deletion of an object; its name is sufficient.
func (s *crdEvents) Delete(obj any) error {
	s.onDeleted(shrinkCRD(obj).unreadable().gr)
	return nil
}

// Replace processes a complete list. An error makes the reflector list again.
func (s *crdEvents) Replace(list []any, _ string) error {
	definitions := make([]*crd.Definition, 0, len(list))
	var unreadableCRDs []unreadableCRD
	for _, obj := range list {
		if o := shrinkCRD(obj); o.err != nil {
			unreadableCRDs = append(unreadableCRDs, o.unreadable())
		} else {
			definitions = append(definitions, o.definition)
		}
	}
	return s.onList(definitions, unreadableCRDs)
}
