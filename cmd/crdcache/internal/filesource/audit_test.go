package filesource

import (
	"fmt"
	"strings"
	"testing"
)

// TestAuditLog verifies that an object has the state of its last response, in one version, and that a type is
// incomplete if the state after the last write of an object is unknown.
func TestAuditLog(t *testing.T) {
	event := func(verb, subresource, level, response string) string {
		if response != "" {
			response = `,"responseObject":` + response
		}
		return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":%q,"stage":"ResponseComplete","verb":%q,"objectRef":{"resource":"widgets","subresource":%q,"apiGroup":"example.com","namespace":"web","name":"a"},"responseStatus":{"code":200}%s}`+"\n",
			level, verb, subresource, response)
	}
	object := func(version string, resourceVersion int) string {
		return event("update", "", "RequestResponse", fmt.Sprintf(`{"apiVersion":"example.com/%s","kind":"Widget","metadata":{"name":"a","namespace":"web","uid":"a","resourceVersion":"%d"},"spec":{"color":"%[1]s"}}`,
			version, resourceVersion))
	}
	const table = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[]}`
	for name, tt := range map[string]struct{ text, objects, reason string }{
		"the same content":   {object("v1", 9) + object("v1", 10), "a v1 10", ""},
		"a newer version":    {object("v1beta1", 1) + object("v1", 2), "a v1 2", ""},
		"an older version":   {object("v1", 1) + object("v1beta1", 2), "a v1beta1 2", ""},
		"an old answer":      {object("v1", 3) + object("v1beta1", 2), "a v1 3", ""},
		"level Metadata":     {object("v1", 1) + event("patch", "", "Metadata", ""), "a v1 1", "patch web/a lacks the object: audit level Metadata, response: none"},
		"a deletion":         {object("v1", 1) + event("delete", "", "Metadata", ""), "a v1 1", "delete web/a lacks the object"},
		"a table":            {object("v1", 1) + event("update", "", "RequestResponse", table), "a v1 1", "response: Table"},
		"a scale":            {object("v1", 1) + event("update", "scale", "RequestResponse", strings.Replace(table, "Table", "Scale", 1)), "a v1 1", "response: Scale"},
		"then a known state": {event("patch", "", "Metadata", "") + object("v1", 2), "a v1 2", ""},
		"no object":          {event("get", "", "Metadata", ""), "", "none of its 1 audit events has an object (audit level Metadata)"},
	} {
		dir := writeTree(t, map[string]string{"audit.jsonl": tt.text})
		s := openSource(t, Options{Paths: []string{dir + "/audit.jsonl"}})
		var objects []string
		for key := range s.reading.loader.origins {
			o := s.reading.loader.storedObject(s.reading.loader.kinds[key.GroupKind], key)
			objects = append(objects, o.GetName()+" "+key.version+" "+o.GetResourceVersion())
		}
		reason, got := fmt.Sprint(s.Reasons(widgets)), strings.Join(objects, ", ")
		if got != tt.objects || !strings.Contains(reason, tt.reason) || tt.reason == "" && reason != "[]" {
			t.Errorf("%s: %s, incomplete because of %q; want %s, %q", name, got, reason, tt.objects, tt.reason)
		}
	}
}
