package readapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	slashed "path"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/serving/readapi"
)

// TestConform verifies that unknown fields and nulls are dropped, and defaults are set, also inside other
// defaults.
func TestConform(t *testing.T) {
	const schema = `{type: object, properties: {
		spec: {type: object, default: {}, properties: {
			n: {type: integer, default: 4}, s: {type: string}, maybe: {type: string, nullable: true},
			list: {type: array, items: {type: object, default: {}, properties: {a: {type: string, default: x}}}},
			map: {type: object, additionalProperties: {type: object, properties: {a: {type: string, default: x}}}}}},
		status: {type: object, properties: {phase: {type: string, default: new}}}}}`
	data, err := json.Marshal(yamlMap(t, schema))
	if err != nil {
		t.Fatal(err)
	}
	typ := completeType(t, data)
	for name, tt := range map[string]struct {
		object, want string
		unknown      []string
	}{
		"nothing":          {`{kind: A}`, `{kind: A, spec: {n: 4}}`, nil},
		"null for default": {`{spec: null}`, `{spec: {n: 4}}`, nil},
		"nulls":            {`{spec: {n: null, s: null, maybe: null}}`, `{spec: {n: 4, maybe: null}}`, nil},
		"in lists": {`{spec: {n: 1, list: [{}, {a: y, b: z}, null]}}`,
			`{spec: {n: 1, list: [{a: x}, {a: y}, {a: x}]}}`, []string{"spec.list[1].b"}},
		"in maps": {`{spec: {n: 1, map: {k: {}, l: {a: y, c: {d: 1}}}}}`,
			`{spec: {n: 1, map: {k: {a: x}, l: {a: y}}}}`, []string{"spec.map.l.c"}},
		"an empty status": {`{spec: {n: 1}, status: {}, other: 1}`, `{spec: {n: 1}, status: {phase: new}}`,
			[]string{"other"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := yamlMap(t, tt.object)
			if diff := cmp.Diff(tt.unknown, typ.Versions[0].Conform(got)); diff != "" {
				t.Errorf("unknown (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(yamlMap(t, tt.want), got); diff != "" {
				t.Errorf("pruned object (-want +got):\n%s", diff)
			}
		})
	}
}

func completeType(t *testing.T, schema []byte) readapi.Type {
	t.Helper()
	typ := readapi.Type{Group: "example.com", Versions: []readapi.Version{{Name: "v1", Schema: schema}}}
	typ.Names.Plural, typ.Names.Kind = "widgets", "Widget"
	if err := typ.Complete(); err != nil {
		t.Fatal(err)
	}
	return typ
}

func TestPrune(t *testing.T) {
	const schema = `{type: object, properties: {
		spec: {type: object, properties: {
			known: {type: string}, open: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {part: {type: object}}},
			map: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}},
			any: {type: object, additionalProperties: true},
			list: {type: array, items: {type: object, properties: {a: {type: string}}}}, bare: {type: array},
			template: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}}}}}`
	const object = `{apiVersion: v1, kind: A, metadata: {name: a, odd: 1}, other: 1, spec: {
		known: x, unknown: {y: z}, open: {x: {y: 1}, part: {x: 1}}, map: {k: {a: x, b: y}}, any: {k: {b: y}},
		list: [{a: x, b: y}, 7], bare: [{b: y}], template: {apiVersion: v1, kind: B, metadata: {name: b}, spec: {x: 1}, more: 1}}}`
	const want = `{apiVersion: v1, kind: A, metadata: {name: a, odd: 1}, spec: {
		known: x, open: {x: {y: 1}, part: {}}, map: {k: {a: x}}, any: {k: {b: y}},
		list: [{a: x}, 7], bare: [{b: y}], template: {apiVersion: v1, kind: B, metadata: {name: b}, spec: {}}}}`
	data, err := json.Marshal(yamlMap(t, schema))
	if err != nil {
		t.Fatal(err)
	}
	typ := completeType(t, data)
	got := yamlMap(t, object)
	typ.Versions[0].Conform(got)
	if diff := cmp.Diff(yamlMap(t, want), got); diff != "" {
		t.Errorf("Conform (-want +got):\n%s", diff)
	}
}

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

func TestMain(m *testing.M) { os.Exit(testkit.Main(m, "crdcache/serving/readapi.")) }

var widgetResource = schema.GroupResource{Group: "example.com", Resource: "widgets"}

const (
	widgetsPath   = "/apis/example.com/v1/widgets"
	inDefaultPath = "/apis/example.com/v1/namespaces/default/widgets"
)

func apply(t testing.TB, s *apiserver.Storage, text string) apiserver.Outcome {
	t.Helper()
	outcome, err := s.Apply(testkit.Parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// newWidgets returns a storage with four red and green widgets in two namespaces.
func newWidgets(t testing.TB, options apiserver.StorageOptions) *apiserver.Storage {
	t.Helper()
	s := apiserver.NewStorage(options)
	apply(t, s, testkit.WidgetCRD)
	apply(t, s, testkit.Widget("default", "a", "red"))
	apply(t, s, testkit.Widget("default", "b", "green"))
	apply(t, s, testkit.Widget("other", "a", "green"))
	apply(t, s, testkit.Widget("other-one", "c", "red"))
	return s
}

func handlerOf(s *apiserver.Storage) http.Handler {
	return readapi.NewHandler(s, readapi.HandlerOptions{})
}

// yamlMap decodes a YAML document.
func yamlMap(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	var content map[string]any
	if err == nil {
		err = utiljson.Unmarshal(data, &content)
	}
	if err != nil {
		t.Error(err)
	}
	return content
}

func get(h http.Handler, path string, headers ...string) testkit.Answer {
	return testkit.Ask(h, http.MethodGet, path, headers...)
}
