package web

import (
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/serving/web/internal/outline"
)

// changeEvent is a change of an object, field by field, or a change of a type's status.
type changeEvent struct {
	// Time of the notification, in milliseconds since 1970.
	Time int64  `json:"time"`
	Type string `json:"type"`
	// Key of the object; empty for a change of the type.
	Key string `json:"key"`
	// Op is added, changed, deleted, or departed for an object that left the shard but still exists. For
	// types it is stateUpdate.Op.
	Op string `json:"op"`
	// Reason and Message explain the status of a type.
	Reason  string           `json:"reason,omitempty"`
	Message string           `json:"message,omitempty"`
	Fields  []outline.Change `json:"fields,omitempty"`
	// More is the number of omitted fields.
	More int `json:"more,omitempty"`
	// ResourceVersion of the object after the change, or at its deletion.
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

func newStateChangeEvent(id string, s stateUpdate) changeEvent {
	return changeEvent{Time: s.Time.UnixMilli(), Type: id, Op: s.Op, Reason: s.Reason, Message: s.Message}
}

func (h *Handler) newChangeEvent(id string, c objectChange) changeEvent {
	result := changeEvent{Time: c.Time.UnixMilli(), Type: id, Key: c.Key, Op: "changed"}
	before, after := h.visibleState(c.Informer, c.Before), h.visibleState(c.Informer, c.After)
	switch {
	case c.Before == nil:
		result.Op = "added"
	case c.LeftShard:
		result.Op, after = "departed", before // the object itself is unchanged
	case c.After == nil:
		result.Op = "deleted"
	}
	result.Fields, result.More = outline.Changes(before, after)
	if after == nil {
		after = before
	}
	metadata, _ := after["metadata"].(map[string]any)
	result.ResourceVersion, _ = metadata["resourceVersion"].(string)
	return result
}

// visibleState returns the visible content of an object before or after a change, or nil.
func (h *Handler) visibleState(informer *dynamicinformer.Informer, object any) map[string]any {
	if object == nil {
		return nil
	}
	if o := h.visibleContent(informer, object); o != nil {
		return o.Object
	}
	return nil
}
