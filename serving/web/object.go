package web

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/serving/web/internal/outline"
)

type objectAnswer struct {
	Type string `json:"type"`
	Key  string `json:"key"`
	Kind string `json:"kind"`
	// Hidden is set if values are replaced by marks.
	Hidden          bool              `json:"hidden,omitempty"`
	Created         string            `json:"created"`
	Deleted         string            `json:"deleted,omitempty"`
	Finalizers      []string          `json:"finalizers,omitempty"`
	ResourceVersion string            `json:"resourceVersion"`
	Conditions      []statusCondition `json:"conditions,omitempty"`
	Lines           []outline.Line    `json:"lines"`
	// Reduced is set if the cache does not store all fields.
	Reduced bool `json:"reduced,omitempty"`
}

// isReduced reports whether the cache does not store all fields of the objects.
func isReduced(informer *dynamicinformer.Informer) bool { return informer.Drops("..") }

type statusCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Since   string `json:"since,omitempty"`
	// Tone is good, bad or open: the meaning of the status.
	Tone string `json:"tone"`
}

func (h *Handler) object(r *http.Request) (any, error) {
	typ, err := h.requestedType(r)
	if err != nil {
		return nil, err
	}
	key := r.FormValue("key")
	object := h.content(typ, key)
	if object == nil {
		return nil, notFound("object not found: " + key)
	}
	out := objectAnswer{
		Type: typ.id, Key: key, Kind: object.GetKind(), Hidden: h.hidesValues(typ),
		ResourceVersion: object.GetResourceVersion(),
		Created:         nestedString(object.Object, "metadata", "creationTimestamp"),
		Deleted:         nestedString(object.Object, "metadata", "deletionTimestamp"),
		Finalizers:      object.GetFinalizers(),
		Conditions:      conditionsOf(typ.informer.GVR().GroupResource(), object.Object),
		Lines:           outline.Lines(object.Object), Reduced: isReduced(typ.informer),
	}
	return out, nil
}

// nestedString returns the string at a path, or "".
func nestedString(object map[string]any, path ...string) string {
	for _, key := range path[:len(path)-1] {
		object, _ = object[key].(map[string]any)
	}
	text, _ := object[path[len(path)-1]].(string)
	return text
}

func conditionsOf(gr schema.GroupResource, object map[string]any) []statusCondition {
	status, _ := object["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	var conditions []statusCondition
	for _, item := range list {
		c, _ := item.(map[string]any)
		kind := nestedString(c, "type")
		if kind == "" {
			continue
		}
		condition := statusCondition{Type: kind, Status: nestedString(c, "status"), Reason: nestedString(c,
			"reason"),
			Message: nestedString(c, "message"), Since: nestedString(c, "lastTransitionTime")}
		condition.Tone = toneOf(gr, condition.Type, condition.Status, condition.Reason)
		conditions = append(conditions, condition)
	}
	return conditions
}
