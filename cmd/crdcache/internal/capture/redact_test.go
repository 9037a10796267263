package capture

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestRedactLeavesNoCopy: what is left out is also in the annotation of kubectl, and, as the key of a list or the item of a
// set, in managedFields.
func TestRedactLeavesNoCopy(t *testing.T) {
	gizmos := schema.GroupResource{Group: "example.com", Resource: "gizmos"}
	var r Redactor
	r.Add(Redaction{Type: "gizmos", Paths: []string{".spec.users", ".spec.tokens"}}, gizmos)
	got, err := r.redact(gizmos, []byte(`{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"a",
		"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"spec\":{\"tokens\":[\"hunter2\"]}}"},
		"managedFields":[{"manager":"m","operation":"Update","apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":
			{"f:spec":{"f:users":{"k:{\"name\":\"eve\"}":{".":{}}},"f:tokens":{"v:\"hunter2\"":{}}}}}]},
		"spec":{"size":1,"users":[{"name":"eve"}],"tokens":["hunter2"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{"eve", "hunter2"} {
		if strings.Contains(string(got), left) {
			t.Errorf("%s is left in %s", left, got)
		}
	}
	if !strings.Contains(string(got), `"size":1`) {
		t.Errorf("%s", got)
	}
}
