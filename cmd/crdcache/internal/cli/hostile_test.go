package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/test/testcluster"
)

// hostileText has 7-bit and 8-bit escape sequences, line breaks, bidirectional controls, and characters of
// width 0 and 2.
const hostileText = "e\x1b[2J\x1b]0;title\x07\u009b31m\r\nv\ti\u202el\u2066\u2028\u200b\u0301\x7f\b\x00世界👩‍👩‍👧"

// hostileObjects returns gizmos in JSON, all of which can be decoded.
func hostileObjects() map[string]string {
	gizmo := func(name, more string) string {
		return `{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":` + name +
			`,"namespace":"web","resourceVersion":"1","uid":"u"}` + more + `}`
	}
	quoted := func(text string) string {
		q, err := json.Marshal(text)
		if err != nil {
			panic(err)
		}
		return string(q)
	}
	var keys strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&keys, `,"k%d":%d`, i, i)
	}
	nested := func(levels int) string {
		return strings.Repeat(`{"a":`, levels) + "1" +
			strings.Repeat("}", levels)
	}
	color := func(value string) string { return `,"spec":{"color":` + value + `}` }
	return map[string]string{
		"text": `{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":` + quoted(hostileText) +
			`,"namespace":` + quoted(hostileText) +
			`,"resourceVersion":"1","uid":"u","labels":{` + quoted(hostileText) + ":" + quoted(hostileText) +
			`},"annotations":{` + quoted(hostileText) + ":" + quoted(hostileText) + `}}` +
			`,"spec":{"color":` + quoted(hostileText) + `,` + quoted(hostileText) + `:{` + quoted(hostileText) + `:1}}}`,
		"kind": `{"apiVersion":` + quoted("example.com/v1"+hostileText) + `,"kind":` + quoted(hostileText) +
			`,"metadata":{"name":"a","namespace":"web","resourceVersion":"1","uid":"u"}}`,
		"long name":  gizmo(`"`+strings.Repeat("n", 1_000_000)+`"`, ""),
		"long value": gizmo(`"a"`, color(`"`+strings.Repeat("v", 1_000_000)+`"`)),
		"many keys":  gizmo(`"a"`, `,"spec":{"color":1`+keys.String()+`}`),
		"nested":     gizmo(`"a"`, color(nested(500))),
		"numbers": gizmo(`"a"`,
			`,"spec":{"color":-0,"size":9223372036854775808,"c":18446744073709551616,"d":1e-999,"e":0.1e1,"f":`+strings.Repeat("1", 300)+`}`),
		"other types":    gizmo(`"a"`, color(`{"x":[1,{"y":null}]}`)),
		"twice":          gizmo(`"a"`, `,"spec":{"color":"a","color":"b"},"kind":"Gizmo"`),
		"surrogates":     gizmo(`"a\ud800b"`, color(`"\udfff\ud800"`)),
		"no characters":  gizmo("\"a\xff\"", color("\"\xc3\x28\xed\xa0\x80\"")),
		"wrong metadata": `{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"a","namespace":"web","resourceVersion":"1","labels":"no","annotations":[1],"creationTimestamp":"never","managedFields":{"a":1},"ownerReferences":7}}`,
	}
}

func invalidObjects() map[string]string {
	gizmo := func(spec string) string {
		return `{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"a","namespace":"web","resourceVersion":"1","uid":"u"},"spec":` + spec + `}`
	}
	return map[string]string{
		"very nested": gizmo(strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000)),
		"too nested":  gizmo(strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000)),
		"infinite":    gizmo("1e999"),
		"digits":      gizmo(strings.Repeat("1", 10_000)),
		"never ends":  gizmo(strings.Repeat("[", 100_000)),
		"no object":   "[1]",
	}
}

// newHostileServer serves objects byte for byte as gizmos, in lists and events. The type has columns.
func newHostileServer(t testing.TB, supportsWatchList bool, objects ...string) string {
	t.Helper()
	storage := apiserver.NewStorage(apiserver.StorageOptions{})
	gizmo := readapi.Type{
		Group: "example.com", Names: crd.Names{Plural: "gizmos", Kind: "Gizmo"}, Namespaced: true,
		Versions: []readapi.Version{{Name: "v1", Columns: []crd.Column{
			{Name: "Color", Type: "string", JSONPath: ".spec.color"}, {Name: "Size", Type: "integer",
				JSONPath: ".spec.size"},
		}}},
	}
	if err := storage.SetType(gizmo); err != nil {
		t.Fatal(err)
	}
	injector := testcluster.NewInjector(readapi.NewHandler(storage, readapi.HandlerOptions{}))
	injector.Add(testcluster.Fault{
		Match: testcluster.Match{Path: gizmosPath},
		Effect: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.URL.Query().Get("watch") == "":
				fmt.Fprintf(w,
					`{"apiVersion":"example.com/v1","kind":"GizmoList","metadata":{"resourceVersion":"1"},"items":[%s]}`, strings.Join(objects, ","))
				return
			case r.URL.Query().Get("sendInitialEvents") != "" && !supportsWatchList:
				w.WriteHeader(http.StatusUnprocessableEntity)
				fmt.Fprint(
					w, `{"apiVersion":"v1","kind":"Status","status":"Failure","code":422,"reason":"Invalid","details":{"causes":[{"reason":"FieldValueForbidden","message":"sendInitialEvents is forbidden","field":"sendInitialEvents"}]}}`)
				return
			case r.URL.Query().Get("sendInitialEvents") != "":
				for _, object := range objects {
					fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", object)
				}
				fmt.Fprint(
					w, `{"type":"BOOKMARK","object":{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n")
			}
			if err := http.NewResponseController(w).Flush(); err == nil {
				<-r.Context().Done()
			}
		},
	})
	server := httptest.NewServer(injector)
	t.Cleanup(server.Close)
	return server.URL
}

var hostileFormats = []string{
	"table", "wide", "name", "json", "yaml", "kyaml", "jsonl", "csv",
	"custom-columns=N:.metadata.name,C:.spec.color,L:.metadata.labels", "jsonpath={.items[*]}",
	"jsonpath-as-json={.items[*].spec}",
	"go-template={{range .items}}{{.metadata.name}} {{.spec}}{{\"\\n\"}}{{end}}",
}
