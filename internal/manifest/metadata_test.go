package manifest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzMetadata verifies that clients can decode the metadata of each object that is read without decoding,
// and what KeepIdentity keeps of it.
func FuzzMetadata(f *testing.F) {
	for _, metadata := range []string{
		`{"name":"a"}`, `{"name":"a","labels":{"b":"c"},"uid":"u","resourceVersion":"7","creationTimestamp":null}`,
		`{"name":"a","generation":1e2}`, `{"name":"a","generation":99999999999999999999}`, `{"name":"a","labels":{"b":1}}`,
		`{"name":"a","finalizers":["b",null]}`, `{"name":"a","creationTimestamp":"2026-11-30T20:00:00Z"}`,
		`{"name":"a","deletionTimestamp":"yesterday"}`, `{"name":"a","Name":5}`, `{"name":"a","new":{}}`,
		`{"name":"a","ownerReferences":[{"apiVersion":"v1","controller":true,"kind":"b","name":"c","uid":"d"}]}`,
		`{"name":"a","ownerReferences":[{"controller":"true"}]}`, `{"name":"a\"b","namespace":"c\\d"}`,
		`{"name":"a","managedFields":[{"fieldsV1":{"f:a":{"}":"\""}},"manager":"m","time":"2026-11-30T20:00:00Z"}]}`,
	} {
		f.Add(metadata)
	}
	type object struct {
		metav1.TypeMeta
		Metadata metav1.ObjectMeta
	}
	f.Fuzz(func(t *testing.T, metadata string) {
		var c Canonical
		_, ok, _ := c.Read([]byte(`{"data":{"a":[1]},"kind":"K","apiVersion":"v1","metadata":`+metadata+`}`), 0)
		if !ok {
			return
		}
		var whole, kept object
		if err := json.Unmarshal(c.Text, &whole); err != nil {
			t.Fatalf("%s is read without decoding, but clients cannot decode it: %v", c.Text, err)
		}
		c.KeepIdentity()
		if err := json.Unmarshal(c.Text, &kept); err != nil {
			t.Fatalf("KeepIdentity returned %s: %v", c.Text, err)
		}
		m := whole.Metadata
		want := object{whole.TypeMeta, metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace,
			Labels: m.Labels, UID: m.UID, ResourceVersion: m.ResourceVersion}}
		if diff := cmp.Diff(want, kept, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("KeepIdentity (-want +got):\n%s", diff)
		}
	})
}
