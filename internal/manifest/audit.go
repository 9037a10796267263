package manifest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// auditLog counts the audit events of a text, and has a note for each object whose last write is unknown.
type auditLog struct {
	events, objects, others int
	level                   string // of the last event
	unknown                 map[auditedObject]Entry
}

type auditedObject struct{ resource, namespace, name string }

// auditEvent has the fields that show the change of an object.
type auditEvent struct {
	Level, Stage, Verb, RequestURI string
	RequestObject, ResponseObject  json.RawMessage
	ResponseStatus                 struct{ Code int }
	ObjectRef                      struct {
		APIGroup, APIVersion, Resource, Subresource, Namespace, Name string
	}
}

var (
	writes = []string{"create", "update", "patch", "delete", "deletecollection"}
	// Requests for objectSubresources return the object. Those for changingSubresources only change it.
	objectSubresources   = []string{"", "status", "resize", "ephemeralcontainers", "approval", "finalize"}
	changingSubresources = []string{"scale", "binding", "eviction"}
	// reviewGroups have types of which no objects are stored.
	reviewGroups = []string{"authentication.k8s.io", "authorization.k8s.io"}
)

// emitAuditEvent yields the object, or the objects of a list, of a successful response.
func (l *list) emitAuditEvent(e Entry) bool {
	var audited auditEvent
	if err := json.Unmarshal(e.Data, &audited); err != nil {
		return l.yield(Entry{Position: e.Position, Err: err})
	}
	l.audit.events++
	l.audit.level = audited.Level
	request, _ := fieldsOf(audited.RequestObject) // none for a patch in an array
	ref, deletes := &audited.ObjectRef, strings.HasPrefix(audited.Verb, "delete")
	isChange := slices.Contains(changingSubresources, ref.Subresource)
	if audited.Stage != "ResponseComplete" || audited.ResponseStatus.Code >= 300 || audited.Verb == "watch" ||
		!isChange && !slices.Contains(objectSubresources, ref.Subresource) ||
		strings.Contains(audited.RequestURI, "dryRun=") || deletes && isSet(request["dryRun"]) {
		return true
	}
	if ref.APIGroup == "" && ref.Resource == "namespaces" {
		ref.Namespace = "" // it repeats the name
	}
	resource := schema.GroupResource{Group: ref.APIGroup, Resource: ref.Resource}.String()
	response := Entry{Position: e.Position}
	response.identify(audited.ResponseObject)
	isStatus := response.Kind == "Status" && response.APIVersion == "v1" && !isChange
	if isStatus && audited.Verb == "delete" && ref.Name != "" {
		l.audit.know(auditedObject{resource, ref.Namespace, ref.Name})
		return l.yield(Entry{Position: e.Position, Recorded: true, Deleted: true, Resource: ref.Resource,
			APIVersion: strings.TrimPrefix(ref.APIGroup+"/"+ref.APIVersion, "/"),
			Namespace:  ref.Namespace, Name: ref.Name})
	} else if isStatus && !deletes {
		return true
	}
	yield := func(object Entry) bool {
		switch {
		case errors.As(object.Err, new(*Note)): // of some namespaces or labels
			return true
		case errors.Is(object.Err, ErrNotObject), errors.Is(object.Err, errFailedRequest),
			object.Err == nil && (object.Name == "" || isChange):
			l.audit.miss(audited, resource, object)
			return true
		case object.Err == nil:
			l.audit.know(auditedObject{resource, object.Namespace, object.Name})
			object.Recorded, object.Deleted = true, isGone(object, deletes)
		}
		return l.yield(object)
	}
	return (&list{Position: e.Position, yield: yield, depth: l.depth, audit: l.audit}).emit(response)
}

// know records that the state of an object is known.
func (a *auditLog) know(o auditedObject) {
	a.objects++
	delete(a.unknown, o)
}

// miss records a response without an object, which has a table, metadata or an access review, or nothing.
func (a *auditLog) miss(e auditEvent, resource string, response Entry) {
	if a.others++; !slices.Contains(writes, e.Verb) || slices.Contains(reviewGroups, e.ObjectRef.APIGroup) {
		return
	}
	ref := e.ObjectRef
	reason := fmt.Sprintf("the audit event of %s %s/%s lacks the object: audit level %s, response: %s", e.Verb,
		ref.Namespace, ref.Name, e.Level, cmp.Or(response.Kind, "none"))
	a.unknown[auditedObject{resource, ref.Namespace, ref.Name}] = Entry{Position: response.Position,
		Err: &Note{Uncollected: resource, Reason: reason}}
}

// report yields the first note for each type, and the number of events without an object.
func (a *auditLog) report(yield func(Entry) bool) {
	byResource := map[string]Entry{}
	for o, e := range a.unknown {
		if first, exists := byResource[o.resource]; !exists || e.Document < first.Document {
			byResource[o.resource] = e
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(byResource)) {
		if !yield(byResource[resource]) {
			return
		}
	}
	if a.events > 0 && a.objects == 0 {
		yield(Entry{Err: fmt.Errorf("%w: %w", ErrNotObject, PartialError(fmt.Sprintf("none of its %d audit events has an "+
			"object (audit level %s): record them at level RequestResponse", a.events, a.level)))})
	} else if a.others > 0 {
		yield(Entry{Err: fmt.Errorf("%w: %d audit events without an object", ErrNotRead, a.others)})
	}
}

// isGone reports whether a response has the last state of an object. Pods on a node outlive the deletion of
// their collection.
func isGone(e Entry, deletes bool) bool {
	var object struct {
		Metadata metav1.ObjectMeta
		Spec     struct {
			NodeName   string
			Finalizers []string // of a namespace
		}
	}
	_ = json.Unmarshal(e.Data, &object) // another kind of spec
	m, grace := object.Metadata, object.Metadata.DeletionGracePeriodSeconds
	return len(m.Finalizers)+len(object.Spec.Finalizers) == 0 && (grace == nil || *grace == 0) &&
		(m.DeletionTimestamp != nil || deletes && (e.Kind != "Pod" || object.Spec.NodeName == ""))
}
