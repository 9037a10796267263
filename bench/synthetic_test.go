package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const recordedLines = `{"type":"ADDED","object":{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"generation":1,"labels":{"instance":"web-000001"},"name":"web-000001","namespace":"a","resourceVersion":"17","uid":"00000000-0000-0000-0000-000000000001"},"spec":{"secretName":"web-000001-tls"}}}
{"type":"ADDED","object":{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"generation":3,"name":"api-000002","namespace":"b","resourceVersion":"18","uid":"00000000-0000-0000-0000-000000000002"},"spec":{"secretName":"other"}}}
{"type":"BOOKMARK","object":{"kind":"Certificate","metadata":{"resourceVersion":"19"}}}
`

const path = "/apis/cert-manager.io/v1/certificates"

func newTestAPI(t *testing.T, count int) *syntheticAPI {
	t.Helper()
	api, err := newSyntheticAPI([]byte(recordedLines), path, count)
	if err != nil {
		t.Fatal(err)
	}
	return api
}

type event struct {
	Type   string
	Object unstructured.Unstructured
}

// openWatch opens a watch and returns a function that reads its events. It closes the watch at the end of the
// test.
func openWatch(t *testing.T, api *syntheticAPI, query, encoding string) func() event {
	t.Helper()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path+"?watch=true&"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	if encoding != "" { // without an encoding, the transport requests gzip and decompresses
		request.Header.Set("Accept-Encoding", encoding)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if want := encoding == ""; response.Uncompressed != want {
		t.Errorf("compressed is %v, want %v", response.Uncompressed, want)
	}
	lines := bufio.NewReader(response.Body)
	return func() event {
		t.Helper()
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		return e
	}
}

// TestObjectsDiffer reads a watch-list and expects the requested number of distinct objects.
func TestObjectsDiffer(t *testing.T) {
	const count = 3*objectsPerPiece + 1
	api := newTestAPI(t, count)
	for name, encoding := range map[string]string{"compressed": "", "plain": "identity"} {
		t.Run(name, func(t *testing.T) {
			next := openWatch(t, api, "sendInitialEvents=true", encoding)
			names, uids, versions := map[string]bool{}, map[string]bool{}, map[string]bool{}
			for n := range count {
				e := next()
				o := &e.Object
				if key := o.GetNamespace() + "/" + o.GetName(); e.Type != "ADDED" || key != api.recording.keyOf(n) {
					t.Fatalf("object %d is %s %s, want %s", n, e.Type, key, api.recording.keyOf(n))
				}
				if instance, ok := o.GetLabels()["instance"]; ok && instance != o.GetName() {
					t.Errorf("%s has the name %s in a label", o.GetName(), instance)
				}
				if secret, _, _ := unstructured.NestedString(o.Object, "spec",
					"secretName"); secret != "other" && secret != o.GetName()+"-tls" {
					t.Errorf("%s has the secret %s", o.GetName(), secret)
				}
				names[o.GetName()], uids[string(o.GetUID())], versions[o.GetResourceVersion()] = true,
					true, true
			}
			if len(names) != count || len(uids) != count || len(versions) != count {
				t.Errorf("%d objects have only %d names, %d UIDs and %d versions", count, len(names),
					len(uids), len(versions))
			}
			if end := next(); end.Type != "BOOKMARK" ||
				end.Object.GetAnnotations()["k8s.io/initial-events-end"] != "true" {
				t.Errorf("the event after the objects is %+v, want the end of the initial events", end)
			}
		})
	}
}

// TestUpdates verifies that both kinds of watches receive each update once, and an error when they expire.
func TestUpdates(t *testing.T) {
	api := newTestAPI(t, 4)
	initial := openWatch(t, api, "sendInitialEvents=true", "")
	var version string
	for range 4 {
		initial()
	}
	end := initial()
	version = end.Object.GetResourceVersion()
	plain := openWatch(t, api, "resourceVersion="+version, "identity")

	sent, err := api.update(t.Context(), 2, 1e6)
	if err != nil || len(sent) != 2 {
		t.Fatalf("sent %v, %v, want 2 values", sent, err)
	}
	for _, next := range []func() event{initial, plain} {
		for n := range 2 {
			e := next()
			if key := e.Object.GetNamespace() + "/" + e.Object.GetName(); e.Type != "MODIFIED" ||
				key != api.recording.keyOf(n) || sent[key].IsZero() || e.Object.GetGeneration() != 2 {
				t.Errorf("the watch sent %s of %s in generation %d, want update %d", e.Type, key,
					e.Object.GetGeneration(), n)
			}
		}
	}
	api.expire()
	for _, next := range []func() event{initial, plain} {
		if e := next(); e.Type != "ERROR" ||
			!strings.Contains(e.Object.Object["message"].(string), "too old") {
			t.Errorf("the watch sent %+v, want it to expire", e)
		}
	}
	if e := openWatch(t, api, "resourceVersion="+version, "identity")(); e.Type != "ERROR" {
		t.Errorf("a watch from an expired version begins with %+v, want ERROR", e)
	}
	again := openWatch(t, api, "sendInitialEvents=true", "")
	for n, want := range []int64{2, 2, 1, 2} {
		if e := again(); e.Object.GetGeneration() != want {
			t.Errorf("object %d is in generation %d, want %d", n, e.Object.GetGeneration(), want)
		}
	}
}

func TestRejectedRequests(t *testing.T) {
	for name, lines := range map[string]string{
		"nothing":      "",
		"no JSON":      "{",
		"a short name": `{"type":"ADDED","object":{"metadata":{"name":"a","uid":"00000000-0000","resourceVersion":"1","generation":1}}}`,
	} {
		if _, err := parseRecording([]byte(lines)); err == nil {
			t.Errorf("%s: recordAPI() succeeded, want an error", name)
		}
	}
	for _, count := range []int{0, 1 << 24} {
		if _, err := newSyntheticAPI([]byte(recordedLines), path, count); err == nil {
			t.Errorf("newSyntheticAPI() with %d objects succeeded, want an error", count)
		}
	}
	api := newTestAPI(t, 1)
	for query, want := range map[string]int{path: http.StatusNotFound,
		path + "?watch=true": http.StatusBadRequest, "/other?watch=true": http.StatusNotFound} {
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, query, nil))
		if w.Code != want {
			t.Errorf("%s is answered with %d, want %d", query, w.Code, want)
		}
	}
}

// TestOwnedObjects verifies that objects of another kind belong to the original with the same number, and
// updates can keep the generation.
func TestOwnedObjects(t *testing.T) {
	api, err := newSyntheticAPI(ownedObjects([]byte(recordedLines), "Owned"), path, 3)
	if err != nil {
		t.Fatal(err)
	}
	api.keepGenerations = true
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(api.recording.appendObject(nil, 2, 5, api.changeLocked(2).generation),
		&o); err != nil {
		t.Fatal(err)
	}
	if owner := metav1.GetControllerOf(&o); owner == nil || o.Kind != "Owned" || owner.Kind != "Certificate" ||
		owner.Name != o.Name || o.Generation != 1 || api.revisionLocked(2).version != api.mu.version {
		t.Errorf("the object is %+v, want an owner of the same name", o)
	}
	if end := string(api.newBookmark(1, "")); !strings.Contains(end, `"kind":"Owned"`) {
		t.Errorf("the bookmark is %s, want the kind Owned", end)
	}
}

// TestBurst verifies that a watch receives all updates that were made before it began.
func TestBurst(t *testing.T) {
	api := newTestAPI(t, 4)
	version := api.mu.version
	if _, err := api.update(t.Context(), 4, 0); err != nil {
		t.Fatal(err)
	}
	next := openWatch(t, api, fmt.Sprintf("resourceVersion=%d", version), "identity")
	for n := range 4 {
		if e := next(); e.Type != "MODIFIED" || e.Object.GetGeneration() != 2 {
			t.Errorf("event %d is %+v, want MODIFIED with generation 2", n, e)
		}
	}
}
