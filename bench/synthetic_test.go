package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
