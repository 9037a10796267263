package print

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func newList(objects []*unstructured.Unstructured) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": ""},
	}}
	for _, obj := range objects {
		list.Items = append(list.Items, *obj)
	}
	return list
}

// compareWithKubectl compares this package's output with cli-runtime's.
func compareWithKubectl(t *testing.T, format string, objects []*unstructured.Unstructured) {
	t.Helper()
	var want, got bytes.Buffer
	theirs := map[string]printers.ResourcePrinter{
		JSON: &printers.JSONPrinter{}, YAML: &printers.YAMLPrinter{}, KYAML: &printers.KYAMLPrinter{},
		Name: &printers.NamePrinter{},
	}[format]
	failure := theirs.PrintObj(newList(objects), &want)
	// kubectl fails for a few control characters that the YAML library misreads in JSON.
	if err := printAll(format, &got, objects, false); err != nil {
		t.Fatalf("%s: kubectl fails with %v, this package with %v", format, failure, err)
	}
	if failure == nil && got.String() != want.String() {
		t.Errorf("%s differs (-kubectl +ours):\n%s", format, cmp.Diff(want.String(), got.String()))
	}
}

// compareRawWithKubectl compares the output of decoded objects with the output of their JSON.
func compareRawWithKubectl(t *testing.T, format string, objects []*unstructured.Unstructured) {
	t.Helper()
	var cached []*unstructured.Unstructured
	for _, obj := range objects {
		data, err := json.Marshal(obj.Object)
		must(t, err)
		u := &unstructured.Unstructured{}
		must(t, u.UnmarshalJSON(data))
		cached = append(cached, u)
	}
	var want, got bytes.Buffer
	failure := printAll(format, &want, cached, false)
	if err := printAll(format, &got, cached, true); (err != nil) != (failure != nil) {
		t.Fatalf("%s fails with %v for decoded objects, with %v for JSON", format, failure, err)
	}
	if failure == nil && got.String() != want.String() {
		t.Errorf("%s printed raw differs (-decoded +raw):\n%s", format, cmp.Diff(want.String(), got.String()))
	}
}

// printAll prints decoded objects, or their JSON.
func printAll(format string, w io.Writer, objects []*unstructured.Unstructured, asJSON bool) error {
	printer, err := NewPrinter(Format{Name: format}, w, List, false)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		object := NewObject(obj)
		if asJSON {
			raw, err := json.Marshal(obj.Object)
			if err != nil {
				return err
			}
			object.Decoded, object.JSON = nil, raw
		}
		if err := printer.Print(object); err != nil {
			return err
		}
	}
	return printer.Close()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newThing(name string, spec any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": name,
			"namespace": "web"}, "spec": spec,
	}}
}

// specialValues are values that printers format specially.
var specialValues = []any{
	nil, true, false, int64(0), int64(math.MaxInt64), int64(math.MinInt64), int64(1) << 53, 0.1, 1e21, 1e-9,
	math.Copysign(0, -1), 100.0, math.MaxFloat64, 5e-324,
	"", " ", "  lead", "trail  ", "~", "null", "true", "no", "on", "y", "1", "1.0", "0x1F", "1e3", "0o7",
	"012", "-", "- a", "a: b", "a #b", "#", "?", "!x",
	"&a", "*a", "|", ">", "%", "@", "`", "'", "\"", "{", "[", ",", "=", "<<", "2020-01-01",
	"2020-01-01T00:00:00Z", "12:30:45", ".inf", ".nan",
	"<>&", "</script>", "é", "日本語", "🙂", "\u2028\u2029", "\ufeff", "\u0085", "\u00a0", "\x00", "\x07",
	"\x1b[31m", "\x7f", "\t", "\r", "\r\n", "\xff\xfe",
	"two\nlines", "ends\n", "ends twice\n\n", "\nbegins", "\n", "tab\there", "a\n  b\n c",
	strings.Repeat("long ", 60), strings.Repeat("x", 300),
	strings.Repeat("long ", 30) + "\n" + strings.Repeat("words ",
		30), map[string]any{}, []any{}, []any{nil}, []any{[]any{}, map[string]any{}},
	map[string]any{"": "", " ": int64(1), "a.b/c": []any{map[string]any{"z": nil, "a": []any{[]any{"x"}}}},
		"10": 1.5, "9": "9", "true": true, "A": "a", "é": "e", "<": ">"},
}

func TestListsEqualKubectl(t *testing.T) {
	for _, format := range []string{JSON, YAML, KYAML, Name} {
		t.Run(format+"/none", func(t *testing.T) { compareWithKubectl(t, format, nil) })
		all := []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "a"}}}}
		for n, value := range specialValues {
			obj := newThing(fmt.Sprint("n", n), map[string]any{"value": value, "list": []any{value, value}})
			all = append(all, obj)
			t.Run(fmt.Sprintf("%s/%.20q", format, fmt.Sprint(value)), func(t *testing.T) {
				compareWithKubectl(t, format, []*unstructured.Unstructured{obj})
				compareRawWithKubectl(t, format, []*unstructured.Unstructured{obj})
			})
		}
		t.Run(format+"/all", func(t *testing.T) { compareWithKubectl(t, format, all) })
	}
}

// randomObject returns an object with random content.
func randomObject(r *rand.Rand, text string) *unstructured.Unstructured {
	var value func(depth int) any
	value = func(depth int) any {
		switch n := r.IntN(8); {
		case n < 2 && depth > 0:
			m := map[string]any{}
			for range r.IntN(4) {
				m[randomWord(r, text)] = value(depth - 1)
			}
			return m
		case n < 4 && depth > 0:
			list := []any{}
			for range r.IntN(4) {
				list = append(list, value(depth-1))
			}
			return list
		case n == 4:
			return int64(r.Uint64())
		case n == 5:
			return math.Ldexp(r.Float64(), r.IntN(200)-100)
		case n == 6:
			return specialValues[r.IntN(len(specialValues))]
		}
		return randomWord(r, text)
	}
	return newThing("x", value(4))
}

// randomWord returns a part of text, or unusual characters.
func randomWord(r *rand.Rand, text string) string {
	if r.IntN(2) == 0 && len(text) > 0 {
		from := r.IntN(len(text))
		return text[from : from+r.IntN(len(text)-from)]
	}
	const odd = "ab: #-'\"\\\n\t\r<>&{}[]|>%@`*!?,é\u2028\u0085\x00\x1b🙂 "
	runes := []rune(odd)
	var b strings.Builder
	for range r.IntN(12) {
		b.WriteRune(runes[r.IntN(len(runes))])
	}
	return b.String()
}

func FuzzListsEqualKubectl(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed, "Some text: with #odd \"things\"\n- in it, <b>&amp; 日本語")
	}
	f.Fuzz(func(t *testing.T, seed uint64, text string) {
		r := rand.New(rand.NewPCG(seed, 1))
		var objects []*unstructured.Unstructured
		for range r.IntN(4) {
			objects = append(objects, randomObject(r, text))
		}
		// Cached objects are decoded from JSON, so text is UTF-8 and numbers are finite.
		for _, obj := range objects {
			data, err := json.Marshal(obj.Object)
			must(t, err)
			must(t, obj.UnmarshalJSON(data))
		}
		for _, format := range []string{JSON, YAML, Name} {
			compareWithKubectl(t, format, objects)
			compareRawWithKubectl(t, format, objects)
		}
	})
}

// FuzzParseFormat checks that each accepted format has the input as text, and prints an object or an error
// with the object's name.
func FuzzParseFormat(f *testing.F) {
	for _, seed := range []string{
		"table", "table=", "json=x", "xml", "", "=", "custom-columns", "custom-columns=", "custom-columns=A",
		"custom-columns=A:.metadata.name,B:{.spec}",
		"custom-columns=A:", "custom-columns=:.a", "custom-columns=A:.a:b", "custom-columns=A:{.a}{.b}",
		"custom-columns=A:.spec.list[?(@.a==1)].b", "custom-columns=A:..*",
		"jsonpath={.a", "jsonpath={range .items[*]}{.metadata.name}{end}", "jsonpath={range}",
		"jsonpath={end}", "jsonpath={.spec.list[-5:9:0]}", "jsonpath-as-json={.metadata}",
		"jsonpath=.metadata.name", "jsonpath={.spec.list[0:2:-1]}", "go-template={{.metadata.name}}",
		"template=0", "go-template={{", "go-template={{index .spec.list 9}}",
		"jsonpath={.spec.list[?(@.a>\"x\")]}",
	} {
		f.Add(seed)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Gizmo", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"list": []any{map[string]any{"a": int64(1), "b": "x"}, nil, "s", 1.5},
			"null": nil, "on": true},
	}}
	f.Fuzz(func(t *testing.T, text string) {
		// formats that read files of the machine
		if strings.Contains(text, "-file=") || strings.HasPrefix(text, "templatefile=") {
			return
		}
		for alias, name := range formatAliases {
			if argument, ok := strings.CutPrefix(text, alias+"="); ok {
				text = name + "=" + argument
			}
		}
		if strings.HasPrefix(text, "go-template=") && (strings.Contains(text, "%") ||
			strings.Contains(text, "template") && strings.Count(text, "template") > 1) {
			return // callers are responsible for large widths and recursion
		}
		format, err := ParseFormat(text)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" || format != (Format{}) {
				t.Errorf("ParseFormat(%q) = %+v, %q, want no format and an error with text", text, format, err)
			}
			return
		}
		if format.Name != text && format.Name+"="+format.Argument != text {
			t.Errorf("ParseFormat(%q) = %+v, want the name and the argument of the text", text, format)
		}
		if format.IsTable() {
			return
		}
		var out bytes.Buffer
		printer, err := NewPrinter(format, &out, List, false)
		if err != nil {
			t.Fatalf("ParseFormat(%q) succeeded, but NewPrinter() = %v", text, err)
		}
		if err := printer.Print(NewObject(object)); err != nil && err.Error() == "" {
			t.Errorf("%q: an error without text", text)
		}
		_ = printer.Close() // errors of templates may occur for the list
	})
}

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// tableJSON returns a Table of objects as a server sends it.
func tableJSON(columns string, rows ...string) string {
	return fmt.Sprintf(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"columnDefinitions":%s,"rows":[%s]}`,
		columns, strings.Join(rows, ","))
}

func rowJSON(name, cells string) string {
	return fmt.Sprintf(`{"cells":%s,"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"resourceVersion":"5"}}}`, cells, name)
}

const columnsJSON = `[{"name":"Name","type":"string"},{"name":"Restarts","type":"integer"}]`

// newTableClient returns a client of a server with these answers to lists and watches, and the received
// requests.
func newTableClient(t *testing.T, list, events string) (*TableClient, *[]*http.Request) {
	t.Helper()
	var requests []*http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r)
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Has("watch") {
			fmt.Fprint(w, events)
			return
		}
		fmt.Fprint(w, list)
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	tables, err := NewPlainClient(config, server.Client())
	must(t, err)
	return NewTableClient(tables, client), &requests
}

// TestPrintedList verifies that objects are returned with their rows in the server's order.
func TestPrintedList(t *testing.T) {
	printed, requests := newTableClient(t, tableJSON(columnsJSON, rowJSON("z", `["z",3]`), rowJSON("a",
		`["a\u0007",null]`)), "")
	list, err := printed.Resource(pods).Namespace("web").List(t.Context(),
		metav1.ListOptions{LabelSelector: "a=b"})
	must(t, err)
	if request := (*requests)[0]; request.URL.Path != "/api/v1/namespaces/web/pods" ||
		request.URL.RawQuery != "includeObject=Object&labelSelector=a%3Db" ||
		!strings.Contains(request.Header.Get("Accept"), "as=Table") {
		t.Errorf("the client requested %s as %s, want a table of the pods in web", request.URL,
			request.Header.Get("Accept"))
	}
	if list.GetResourceVersion() != "7" || len(list.Items) != 2 || list.Items[0].GetName() != "z" ||
		RowIndex(&list.Items[0]) >= RowIndex(&list.Items[1]) {
		t.Errorf("List = %v, want two objects in the order of the rows, z first, at version 7", list)
	}
	rows := printed.Rows(pods)
	if definitions := rows.Columns; len(definitions) != 2 || definitions[1].Name != "Restarts" {
		t.Errorf("Definitions = %v, want two columns, the second Restarts", definitions)
	}
	want := [][]any{{"z", int64(3)}, {"a\uFFFD", nil}}
	got := [][]any{rows.Cells(&list.Items[0], false), rows.Cells(&list.Items[1], false)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	if _, err := json.Marshal(list.Items[0].DeepCopy().Object); err != nil {
		t.Errorf("encoding an object with its row: %v", err)
	}
}

// TestPrintedWatch verifies that the row of each event's object, bookmarks and errors are returned.
func TestPrintedWatch(t *testing.T) {
	event := func(kind, object string) string {
		return fmt.Sprintf("{\"type\":%q,\"object\":%s}\n", kind, object)
	}
	printed, _ := newTableClient(t, "", event("ADDED", tableJSON(columnsJSON, rowJSON("a", `["a",0]`)))+
		event("DELETED", tableJSON("null", rowJSON("a", `["a",1]`)))+
		event("BOOKMARK", tableJSON("null", rowJSON("", `["",0]`)))+
		event("BOOKMARK", `{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"9"}}`)+
		event("ERROR", `{"apiVersion":"v1","kind":"Status","code":410,"reason":"Expired"}`))
	w, err := printed.Resource(pods).Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	defer w.Stop()
	var got []string
	for e := range w.ResultChan() {
		switch object := e.Object.(type) {
		case *unstructured.Unstructured:
			got = append(got, fmt.Sprint(e.Type, " ", object.GetResourceVersion(), " ", rowCells(object)))
		case *metav1.Status:
			got = append(got, fmt.Sprint(e.Type, " ", object.Code))
		}
		if e.Type == watch.Error {
			break
		}
	}
	want := []string{"ADDED 5 [a 0]", "DELETED 5 [a 1]", "BOOKMARK 5 [ 0]", "BOOKMARK 9 []", "ERROR 410"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
