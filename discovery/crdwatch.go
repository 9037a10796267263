package discovery

import (
	"fmt"
	"strings"
	"time"

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
	err        error // reason why there is no definition
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

// crdWatch updates a Tracker from a watch on CustomResourceDefinitions. It stores nothing.
type crdWatch struct{ tracker *Tracker }

// unreadFields are the largest fields, which crd.Summary does not read.
var unreadFields = append(unreadMetadata[:2:2], "spec.versions[*].schema", "spec.versions[*].selectableFields",
	"spec.versions[*].additionalPrinterColumns", "spec.conversion.webhook")

// Transformer shrinks each object as it arrives, before a list is complete.
func (w crdWatch) Transformer() cache.TransformFunc {
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
	}
	return &crdObject{err: fmt.Errorf("unexpected object %T", obj)}
}

func (w crdWatch) Add(obj any) error { return w.Update(obj) }
func (w crdWatch) Resync() error     { return nil }

// Update stores an added or changed object. It returns no decoding error: the reflector would only log it.
func (w crdWatch) Update(obj any) error {
	o := shrinkCRD(obj)
	w.update(func(s *typeState) []Event {
		if o.err != nil {
			return s.setCRDUnreadable(o.unreadable(), time.Now())
		}
		return s.putCRD(o.definition)
	})
	return nil
}

// Delete needs only the name of the deleted object.
func (w crdWatch) Delete(obj any) error {
	w.update(func(s *typeState) []Event { return s.dropCRD(shrinkCRD(obj).unreadable().gr, time.Now()) })
	return nil
}

// Replace stores a complete list. An error makes the reflector list again.
func (w crdWatch) Replace(list []any, _ string) (err error) {
	definitions := make([]*crd.Definition, 0, len(list))
	var unreadable []unreadableCRD
	for _, obj := range list {
		if o := shrinkCRD(obj); o.err != nil {
			unreadable = append(unreadable, o.unreadable())
		} else {
			definitions = append(definitions, o.definition)
		}
	}
	w.tracker.update(func(s *typeState, status *TrackerStatus) (events []Event) {
		if events, err = s.replaceCRDs(definitions, unreadable, time.Now()); err != nil {
			status.CRDs.LastError = err
			return nil
		}
		status.CRDs.Synced, status.CRDs.Unavailable = true, false
		status.recordCRDWatchSuccess(s)
		return events
	})
	return err
}

func (w crdWatch) update(change func(s *typeState) []Event) {
	w.tracker.update(func(s *typeState, status *TrackerStatus) []Event {
		events := change(s)
		status.recordCRDWatchSuccess(s)
		return events
	})
}

// recordCRDWatchSuccess records a success of the CRD watch, and the unreadable CRDs.
func (status *TrackerStatus) recordCRDWatchSuccess(s *typeState) {
	status.CRDs.recordSuccess(time.Now())
	status.CRDs.LastError = s.unreadableError()
}

func (w crdWatch) onSuccess() { w.update(func(*typeState) []Event { return nil }) }

func (w crdWatch) onFailure(err error, _ bool) {
	w.tracker.updateStatus(func(status *TrackerStatus) { status.CRDs.LastError = err })
}

func (w crdWatch) onForbidden() {
	newlyForbidden := false
	w.tracker.update(func(s *typeState, status *TrackerStatus) []Event {
		newlyForbidden = !s.crdsForbidden
		status.CRDs.Unavailable = true
		return s.setCRDsForbidden(time.Now())
	})
	if newlyForbidden {
		w.tracker.Refresh() // discovery is authoritative now
	}
}
