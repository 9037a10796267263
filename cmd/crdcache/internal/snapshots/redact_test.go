package snapshots

import (
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestRedactLeavesNoCopy checks that omitted values do not remain in kubectl's annotation or in
// managedFields.
func TestRedactLeavesNoCopy(t *testing.T) {
	gizmos := schema.GroupResource{Group: "example.com", Resource: "gizmos"}
	var r redactor
	r.add(redaction{Type: "gizmos", Paths: []string{".spec.users", ".spec.tokens"}}, gizmos)
	got, err := r.redact(gizmos, []byte(`{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"a",
		"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"spec\":{\"tokens\":[\"hunter2\"]}}"},
		"managedFields":[{"manager":"m","operation":"Update","apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":
			{"f:spec":{"f:users":{"k:{\"name\":\"eve\"}":{".":{}}},"f:tokens":{"v:\"hunter2\"":{}}}}}]},
		"spec":{"size":1,"users":[{"name":"eve"}],"tokens":["hunter2"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"eve", "hunter2"} {
		if strings.Contains(string(got), secret) {
			t.Errorf("%s remains in %s", secret, got)
		}
	}
	if !strings.Contains(string(got), `"size":1`) {
		t.Errorf("the redacted object is %s, want its other fields", got)
	}
}

// TestRedactEvents checks that redacting events of one group also redacts the other group.
func TestRedactEvents(t *testing.T) {
	core, group := session.EventTypes[0], session.EventTypes[1]
	objects := map[schema.GroupResource]string{
		core:  `{"apiVersion":"v1","kind":"Event","metadata":{"name":"a"},"message":"hunter2","involvedObject":{"name":"mallory","kind":"Pod"}}`,
		group: `{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"a"},"note":"hunter2","regarding":{"name":"mallory","kind":"Pod"}}`,
	}
	for _, named := range []struct {
		gr    schema.GroupResource
		paths []string
	}{
		{core, []string{".message", ".involvedObject.name"}}, {core,
			[]string{"['message']", ".involvedObject['name']"}},
		{group, []string{".note", ".regarding.name"}},
	} {
		var r redactor
		r.add(redaction{Type: "events", Paths: named.paths}, named.gr)
		for gr, text := range objects {
			got, err := r.redact(gr, []byte(text))
			if err != nil || strings.Contains(string(got), "hunter2") ||
				strings.Contains(string(got), "mallory") || !strings.Contains(string(got), "Pod") {
				t.Errorf("redact(%s) with paths %v = %s, %v; want the object without the secrets", gr,
					named.paths, got, err)
			}
			if r.canSaveRows(gr) {
				t.Errorf("canSaveRows(%s) = true for a redacted type, want false", gr)
			}
		}
	}
}
