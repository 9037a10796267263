package readapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	slashed "path"
	"testing"

	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/serving/readapi"
)

// FuzzRequest sends any path, query and Accept header. The handler must not panic, and every response must be
// well formed.
func FuzzRequest(f *testing.F) {
	for _, path := range []string{widgetsPath, inDefaultPath + "/a", "/api/v1/namespaces/a/status", "/apis",
		"/openapi/v3/apis/example.com/v1", "/version", "//", "/apis//v1/x"} {
		f.Add(path, "limit=1&labelSelector=a in (b)&fieldSelector=spec.color%3Dred", asTable)
		f.Add(path, "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1",
			"application/json;q=0.5,*/*")
		f.Add(path, "continue="+readapi.NewContinueToken(7, "default", "default/a")+
			"&resourceVersion=0&timeoutSeconds=1", asPartialList)
		f.Add(path, "resourceVersionMatch=Exact&resourceVersion=8&includeObject=Object&watch=false",
			"application/yaml")
	}
	s := newWidgets(f, apiserver.StorageOptions{})
	h := readapi.NewHandler(s, readapi.HandlerOptions{WatchTimeout: 1})
	f.Fuzz(func(t *testing.T, path, query, accept string) {
		values, _ := url.ParseQuery(query)
		values.Del("timeoutSeconds") // otherwise watches take long
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path, r.URL.RawQuery = path, values.Encode()
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Header().Get("Content-Type") != readapi.MediaJSON {
			return
		}
		decoder := json.NewDecoder(w.Body)
		for decoder.More() {
			var content map[string]any
			if err := decoder.Decode(&content); err != nil {
				t.Fatalf("invalid JSON in the response (%v) to %s?%s", err, path, query)
			}
			if content["kind"] == "Status" && content["code"] != float64(w.Code) {
				t.Errorf("status code %d, want the %v in the body", w.Code, content["code"])
			}
		}
	})
}

// FuzzToken checks that a continue token is parsed to the values from which it was created, and that any
// other text causes no panic.
func FuzzToken(f *testing.F) {
	f.Add(int64(7), "default", "a", "")
	f.Add(int64(readapi.Latest), "", "a/b", "abc")
	f.Fuzz(func(t *testing.T, version int64, namespace, name, text string) {
		_, _, _ = readapi.ParseContinueToken(text, namespace)
		key := readapi.ObjectKey(namespace, name)
		got, start, err := readapi.ParseContinueToken(readapi.NewContinueToken(version, namespace, key),
			namespace)
		// The parser refuses tokens with a path that is not clean.
		valid := version != 0 && slashed.Clean("/"+name+"\x00") == "/"+name+"\x00"
		if valid != (err == nil) || valid &&
			(got != version || len(start) < len(readapi.PrefixOf(namespace))) {
			t.Errorf("the token of version %d, key %q is parsed as %d, %q, %v", version, key, got, start, err)
		}
	})
}
