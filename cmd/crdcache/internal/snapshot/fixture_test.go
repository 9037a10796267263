package snapshot_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/snapshot"
)

var gizmos = snapshot.Type{Group: "example.com", Version: "v1", Resource: "gizmos", Kind: "Gizmo",
	Namespaced: true}

// gizmo returns an object as API servers send it.
func gizmo(namespace, name, text string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":%q,"namespace":%q,"uid":"u"},"spec":{"text":%q}}`, name, namespace, text)
}

// snapshotOf returns a snapshot of n gizmos, and a missing type.
func snapshotOf(tb testing.TB, n int) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := snapshot.NewWriter(&out, snapshot.Origin{Tool: "test", Server: snapshot.Server{Host: "there"}})
	section := w.BeginType(gizmos)
	for i := range n {
		if err := section.Add(gizmo("web", fmt.Sprintf("g-%06d", i), fmt.Sprintf("%0300d", i*7919)),
			nil); err != nil {
			tb.Fatal(err)
		}
	}
	if err := section.Close("17"); err != nil {
		tb.Fatal(err)
	}
	why := metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: "no"}
	if err := w.AddMissing(snapshot.Type{Version: "v1", Resource: "secrets", Kind: "Secret"}, why,
		false); err != nil {
		tb.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func open(text []byte) (*snapshot.File, error) {
	return snapshot.NewFile(bytes.NewReader(text), int64(len(text)))
}

func readAll(f *snapshot.File) (map[string]string, error) {
	objects := map[string]string{}
	for _, saved := range f.Contents().Types {
		for r, err := range f.Objects(saved.GVR().GroupResource()).All {
			if err != nil {
				return objects, err
			}
			objects[saved.Resource+" "+r.Key] = string(r.JSON)
		}
	}
	return objects, nil
}

func apiVersionOf(t *testing.T, object []byte) string {
	t.Helper()
	var typ metav1.TypeMeta
	if err := json.Unmarshal(object, &typ); err != nil {
		t.Fatal(err)
	}
	return typ.APIVersion
}
