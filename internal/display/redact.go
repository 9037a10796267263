package display

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// lastApplied is the annotation in which kubectl apply stores a copy of the object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// publicFields are the fields of a Secret that are not confidential. All others are.
var publicFields = map[string]bool{"apiVersion": true, "kind": true, "metadata": true, "type": true,
	"immutable": true}

// Redactor replaces confidential values with placeholders. A placeholder only shows whether the value of one
// field of one object has changed, because it is a hash keyed by a secret of the process. It is safe for
// concurrent use, and created by NewRedactor.
type Redactor struct {
	key      []byte
	disabled bool
}

// NewRedactor returns a Redactor. If showEverything is true, the Redactor changes nothing.
func NewRedactor(showEverything bool) *Redactor {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return &Redactor{key: key, disabled: showEverything}
}

// Redacts reports whether objects of a type are redacted. Only Secrets are, in any version.
func (r *Redactor) Redacts(gr schema.GroupResource) bool {
	return !r.disabled && gr == schema.GroupResource{Resource: "secrets"}
}

// Object returns the object without confidential values: itself, or a redacted copy.
func (r *Redactor) Object(gr schema.GroupResource, object map[string]any) map[string]any {
	if !r.Redacts(gr) {
		return object
	}
	return r.redact(uidOf(object), object)
}

// RedactPair redacts two states of an object. Equal values have equal placeholders, even if it was recreated.
func (r *Redactor) RedactPair(gr schema.GroupResource, before, after map[string]any) (_, _ map[string]any) {
	if !r.Redacts(gr) {
		return before, after
	}
	uid := uidOf(before)
	return r.redact(uid, before), r.redact(uid, after)
}

func uidOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	return uid
}

// redact returns a redacted copy. The placeholders depend on uid.
func (r *Redactor) redact(uid string, object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	redactedObject := make(map[string]any, len(object))
	for name, value := range object {
		switch {
		case !publicFields[name]:
			redactedObject[name] = r.redactValues(uid, name, value)
		case name == "metadata":
			redactedObject[name] = r.redactMetadata(uid, metadata)
		default:
			redactedObject[name] = value
		}
	}
	return redactedObject
}

func (r *Redactor) redactMetadata(uid string, redactMetadata map[string]any) map[string]any {
	annotations, _ := redactMetadata["annotations"].(map[string]any)
	if annotations[lastApplied] == nil {
		return redactMetadata
	}
	redactedMetadata, redactedAnnotations := maps.Clone(redactMetadata), maps.Clone(annotations)
	redactedAnnotations[lastApplied] = r.redactValue(uid, lastApplied, annotations[lastApplied])
	redactedMetadata["annotations"] = redactedAnnotations
	return redactedMetadata
}

// redactValues redacts the values of a map but keeps its keys, which managedFields and kubectl describe also
// show.
func (r *Redactor) redactValues(uid, path string, value any) any {
	entries, ok := value.(map[string]any)
	if !ok {
		return r.redactValue(uid, path, value)
	}
	redactedValues := make(map[string]any, len(entries))
	for name, entry := range entries {
		redactedValues[name] = r.redactValue(uid, path+"/"+name, entry)
	}
	return redactedValues
}

func (r *Redactor) redactValue(uid, path string, value any) string {
	hash := hmac.New(sha256.New, r.key)
	_ = json.NewEncoder(hash).Encode([]any{uid, path, value}) // writing to a hash never fails
	return "redacted-" + hex.EncodeToString(hash.Sum(nil)[:4])
}
