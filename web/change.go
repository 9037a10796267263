package web

import (
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/web/internal/diff"
	"github.com/crdcache/crdcache/web/internal/feed"
)

// change is a change of an object, field by field, or of what is known of a type.
type change struct {
	// Time is when it was heard of, in milliseconds since 1970.
	Time int64  `json:"time"`
	Type string `json:"type"`
	// Key is that of the object; empty where the type itself is told of.
	Key string `json:"key"`
	// Op is added, changed, deleted or departed, which has left the shard and exists, and of a type what
	// feed.State has.
	Op string `json:"op"`
	// Reason and Message say why a type is as it is.
	Reason  string       `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
	Fields  []diff.Field `json:"fields,omitempty"`
	// More is how many fields are left out.
	More int `json:"more,omitempty"`
	// ResourceVersion is that of the object after the change, or when it was deleted.
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

func stateChange(id string, s feed.State) change {
	return change{Time: s.Time.UnixMilli(), Type: id, Op: s.Op, Reason: s.Reason, Message: s.Message}
}

func (h *Handler) changeOf(id string, c feed.Change) change {
	told := change{Time: c.Time.UnixMilli(), Type: id, Key: c.Key, Op: "changed"}
	before, after := h.state(c.Informer, c.Before), h.state(c.Informer, c.After)
	switch {
	case c.Before == nil:
		told.Op = "added"
	case c.Departed:
		told.Op, after = "departed", before // nothing has changed in it
	case c.After == nil:
		told.Op = "deleted"
	}
	told.Fields, told.More = diff.Fields(before, after)
	if after == nil {
		after = before
	}
	metadata, _ := after["metadata"].(map[string]any)
	told.ResourceVersion, _ = metadata["resourceVersion"].(string)
	return told
}

// state is what may be shown of one side of a change; nil where there is none.
func (h *Handler) state(informer *dynamicinformer.Informer, object any) map[string]any {
	if object == nil {
		return nil
	}
	if o := h.shown(informer, object); o != nil {
		return o.Object
	}
	return nil
}
