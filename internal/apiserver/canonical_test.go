package apiserver

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/internal/testkit"
)

// typicalObject is an object as an API server sends it.
const typicalObject = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":{"a":"b"},"creationTimestamp":"2026-01-31T00:00:00Z","generation":1,` +
	`"labels":{"color":"red","size":"x"},"managedFields":[{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{}}},"manager":"m","operation":"Update","time":"2026-01-01T00:00:00Z"}],` +
	`"name":"n","namespace":"default","ownerReferences":[{"apiVersion":"v1","controller":true,"kind":"A","name":"b","uid":"c"}],"resourceVersion":"70","uid":"u"},` +
	`"spec":{"count":-7,"list":[1,"é <",null,true,{}],"none":[],"text":"a\nb\u003c\\\""},"status":{}}`

// TestCanonical verifies that objects read without decoding equal the decoded ones.
func TestCanonical(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		read bool
	}{
		"usual":             {strings.ReplaceAll(typicalObject, " <", " "), true},
		"character of HTML": {typicalObject, true},
		"indented": {strings.NewReplacer(" <", "", `":`, "\" :\n\t", `{`, "{ ", `}`, "\n}", "[",
			"[\r\n").Replace(typicalObject) + "\n", true},
		"keys not in order": {
			`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"n","resourceVersion":"1"}}`,
			false},
		"a key twice":    {`{"apiVersion":"v1","kind":"A","metadata":{"name":"n"},"x":1,"x":2}`, false},
		"a float":        {`{"apiVersion":"v1","kind":"A","metadata":{"name":"n"},"x":1.0}`, true},
		"minus zero":     {`{"apiVersion":"v1","kind":"A","metadata":{"name":"n"},"x":-0}`, true},
		"another escape": {`{"apiVersion":"v1","kind":"A","metadata":{"name":"n"},"x":"\/"}`, true},
		"an escaped key": {`{"apiVersion":"v1","kind":"A","metadata":{"name":"n"},"x\n":1}`, true},
		"no name":        {`{"apiVersion":"v1","kind":"A","metadata":{}}`, false},
		"no version":     {`{"kind":"A","metadata":{"name":"n"}}`, false},
		"odd metadata": {`{"apiVersion":"v1","kind":"A","metadata":{"labels":{"a":1},"name":"n"}}`,
			false},
		"no such day": {
			`{"apiVersion":"v1","kind":"A","metadata":{"creationTimestamp":"2026-02-30T00:00:00Z","name":"n"}}`, false},
		"invalid UTF-8": {
			"{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"n\"},\"x\":\"\xff\"}", true},
		"version not first":     {`{"a":1,"apiVersion":"v1","kind":"A","metadata":{"name":"n"}}`, true},
		"text after the object": {`{"apiVersion":"v1","kind":"A","metadata":{"name":"n"}} 1`, false},
		"nested very deeply": {`{"apiVersion":"v1","kind":"A","metadata":{"name":"n"},"x":` +
			strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if read := sameAsDecoded(t, []byte(tt.text)); read != tt.read {
				t.Errorf("the object was read without decoding: %v, want %v", read, tt.read)
			}
		})
	}
}

// sameAsDecoded compares an object read without decoding with the decoded one. It returns false if the text
// has to be decoded.
func sameAsDecoded(t *testing.T, text []byte) bool {
	t.Helper()
	c := &canonicalizer{}
	if !c.read(text) {
		return false
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(text, &u.Object); err != nil {
		t.Fatalf("the canonicalizer accepted invalid JSON: %v in %s", err, text)
	}
	if _, err := validateIdentity(u); err != nil {
		t.Errorf("the canonicalizer accepted an invalid identity: %v in %s", err, text)
	}
	body, err := encodeBody(u.Object)
	if err != nil || !bytes.Equal(body, c.body) {
		t.Errorf("encoding the decoded object: %v\n%s\nthe canonicalizer wrote\n%s", err, body, c.body)
	}
	want := []string{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName(), u.GetResourceVersion()}
	got := []string{string(c.apiVersion), string(c.kind), string(c.namespace), string(c.name),
		string(c.resourceVersion)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("object (-decoded +read):\n%s", diff)
	}
	if diff := cmp.Diff(newLabelSet(u.GetLabels()), labelSet(c.labels)); diff != "" {
		t.Errorf("labels (-decoded +read):\n%s", diff)
	}
	return true
}

func FuzzCanonical(f *testing.F) {
	f.Add([]byte(typicalObject))
	f.Add([]byte(strings.ReplaceAll(typicalObject, " <", "")))
	f.Add([]byte(`{"apiVersion":"v1","kind":"A","metadata":{"name":"n","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a"]}}`))
	f.Fuzz(func(t *testing.T, text []byte) { sameAsDecoded(t, text) })
}

// TestRestoreJSON verifies that all ways of restoring and storing objects serve the same objects.
func TestRestoreJSON(t *testing.T) {
	var want string
	for _, compress := range []bool{false, true} {
		for _, asText := range []bool{false, true} {
			s := NewStorage(StorageOptions{Compress: compress})
			apply(t, s, testkit.WidgetCRD)
			for i := range 300 {
				text := strings.NewReplacer(`"name":"n"`, fmt.Sprintf(`"name":"n%03d"`, i), `"70"`,
					fmt.Sprintf(`"%d"`, 70+i), " <", "").Replace(typicalObject)
				if i == 7 {
					text = strings.Replace(text, `"text":"`, `"text":"`+strings.Repeat("long ", 20_000), 1)
				}
				if i%10 == 3 { // this object has to be decoded
					text = strings.Replace(text, `{"apiVersion":"example.com/v1","kind":"Widget",`,
						`{"kind":"Widget","apiVersion":"example.com/v1",`, 1)
				}
				var err error
				if asText {
					_, err = s.RestoreJSON([]byte(text))
				} else {
					u := &unstructured.Unstructured{}
					if err = u.UnmarshalJSON([]byte(text)); err == nil {
						_, err = s.Restore(u)
					}
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			// Restore the objects again, with one change.
			again := strings.NewReplacer(`"name":"n"`, `"name":"n005"`, " <", "", `-7`, `8`).Replace(typicalObject)
			if outcome, err := s.RestoreJSON([]byte(again)); err != nil || outcome != Updated {
				t.Errorf("RestoreJSON() of a changed object = %v, %v, want %v", outcome, err, Updated)
			}
			if outcome, err := s.RestoreJSON([]byte(again)); err != nil || outcome != Unchanged {
				t.Errorf("RestoreJSON() of the same object = %v, %v, want %v", outcome, err, Unchanged)
			}
			h := handlerOf(s)
			body := get(h, widgetsPath).Body
			if want == "" {
				want = body
			}
			if body != want {
				t.Errorf("compressed %v, as text %v: %s", compress, asText, cmp.Diff(want, body))
			}
			if a := get(h, inDefaultPath+"/n100"); !strings.Contains(a.Body, `"n100"`) {
				t.Errorf("the response is %+v, want the object n100", a)
			}
			if keys := get(h, widgetsPath+"?labelSelector=color%3Dred&limit=2").Keys(t); len(keys) != 2 {
				t.Errorf("list by label: got the keys %q, want 2", keys)
			}
		}
	}
	if _, err := NewStorage(StorageOptions{}).RestoreJSON([]byte(typicalObject)); err == nil {
		t.Error("RestoreJSON() of an unknown type succeeded, want an error")
	}
}
