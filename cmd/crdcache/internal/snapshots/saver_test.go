package snapshots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/snapshot"
	"github.com/crdcache/crdcache/serving/readapi"
)

// saveAndOpen saves all types of a server with the given number of gizmos, and opens the file. wrap wraps the
// server's handler.
func saveAndOpen(t *testing.T, gizmoCount int, wrap func(http.Handler) http.Handler) (*snapshot.File, error) {
	t.Helper()
	storage := apiserver.NewStorage(apiserver.StorageOptions{})
	if err := storage.SetType(readapi.Type{
		Group: "example.com", Names: crd.Names{Plural: "gizmos",
			Kind: "Gizmo"}, Versions: []readapi.Version{{Name: "v1"}},
	}); err != nil {
		t.Fatal(err)
	}
	for i := range gizmoCount {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1",
			"kind": "Gizmo"}}
		u.SetName(fmt.Sprintf("g-%03d", i))
		if _, err := storage.Apply(u); err != nil {
			t.Fatal(err)
		}
	}
	config := readapi.Config(wrap(readapi.NewHandler(storage, readapi.HandlerOptions{})))
	types, err := discovery.NewClient(config, discovery.Options{})
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := types.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	saver := &snapshotSaver{
		target:   &session.Target{IOStreams: genericiooptions.NewTestIOStreamsDiscard(), Rest: config},
		writer:   snapshot.NewWriter(&text, snapshot.Origin{}),
		allTypes: catalog.Resources(), types: catalog.Resources(),
	}
	_, saveErr := saver.save(t.Context())
	if err := saver.writer.Commit(); err != nil {
		t.Fatal(err)
	}
	file, err := snapshot.NewFile(bytes.NewReader(text.Bytes()), int64(text.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return file, saveErr
}

func interceptGizmos(answer func(http.ResponseWriter, *http.Request) bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/gizmos") || !answer(w, r) {
				next.ServeHTTP(w, r)
			}
		})
	}
}

func writeStatus(w http.ResponseWriter, code int, reason string) bool {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(
		w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"because of %[1]s"}`, reason, code)
	return true
}

var gizmos = readapi.Type{Group: "example.com", Names: crd.Names{Plural: "gizmos"}}.GroupResource()

// TestPages verifies that a type of several pages is saved completely.
func TestPages(t *testing.T) {
	var requests atomic.Int32
	file, err := saveAndOpen(t, 1234,
		interceptGizmos(func(http.ResponseWriter, *http.Request) bool { requests.Add(1); return false }))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for range file.Objects(gizmos).All {
		n++
	}
	if n != 1234 || requests.Load() != 4 {
		t.Errorf("%d objects in %d requests, want 1234 in 4", n, requests.Load())
	}
}

// TestExpired verifies that an expired list is restarted, and that its earlier pages are discarded.
func TestExpired(t *testing.T) {
	var expired atomic.Bool
	file, err := saveAndOpen(t, 25, interceptGizmos(func(w http.ResponseWriter, r *http.Request) bool {
		return r.URL.Query().Get("continue") != "" && expired.CompareAndSwap(false, true) &&
			writeStatus(w, http.StatusGone, "Expired")
	}))
	if err != nil || !expired.Load() {
		t.Fatal(err)
	}
	if saved := file.Objects(gizmos).Type(); saved.Objects != 25 || saved.Missing != nil {
		t.Errorf("the saved type is %+v, want 25 objects", saved)
	}
	if err := file.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestPageOfOtherVersion verifies that a page with another resource version is rejected.
func TestPageOfOtherVersion(t *testing.T) {
	file, err := saveAndOpen(t, 25, interceptGizmos(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("continue") == "" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(
			w, `{"kind":"GizmoList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"999999"},"items":[]}`)
		return true
	}))
	if err == nil || !strings.Contains(err.Error(), "continued at another resource version") {
		t.Errorf("the error is %v, want one about another resource version", err)
	}
	if saved := file.Objects(gizmos).Type(); saved.Objects != 0 || saved.Missing == nil ||
		saved.NotRequested {
		t.Errorf("the saved type is %+v, want a missing one", saved)
	}
}

// TestRefused verifies that the server's error for a type is returned and recorded in the file, and that the
// other types are saved.
func TestRefused(t *testing.T) {
	tests := map[string]struct {
		code         int
		reason, want string
	}{
		"forbidden": {http.StatusForbidden, "Forbidden", "because of Forbidden"},
		"broken": {http.StatusInternalServerError, "InternalError",
			"gizmos.example.com: could not be saved in the snapshot: because of InternalError"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			file, err := saveAndOpen(t, 3, interceptGizmos(func(w http.ResponseWriter,
				_ *http.Request) bool {
				return writeStatus(w, tt.code, tt.reason)
			}))
			if err == nil || !strings.Contains(err.Error(), "because of "+tt.reason) {
				t.Errorf("the error is %v, want the server's reason", err)
			}
			if missing := file.Objects(gizmos).Type().Missing; missing == nil ||
				missing.Message != tt.want || missing.Code != http.StatusForbidden {
				t.Errorf("the recorded error is %+v, want the code 403 and %q", missing, tt.want)
			}
			if other := file.Objects(crd.GVR.GroupResource()).Type(); other.Missing != nil {
				t.Errorf("another type is missing: %+v", other)
			}
		})
	}
}

func TestInvalidJSON(t *testing.T) {
	for _, body := range []string{"<html>", `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"object":7}]}`} {
		file, err := saveAndOpen(t, 3, interceptGizmos(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, body)
			return true
		}))
		if err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("%s: the error is %v, want a decoding error", body, err)
		}
		if file.Objects(gizmos).Type().Missing == nil {
			t.Errorf("%s: the file does not record gizmos as missing", body)
		}
	}
}

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
		}
	}
}
