package codec_test

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/codec"
)

func clientGoSerializer() runtime.NegotiatedSerializer {
	return dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer
}

func jsonInfo(t testing.TB, s runtime.NegotiatedSerializer) runtime.SerializerInfo {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(s.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		t.Fatal("the serializer does not support JSON")
	}
	return info
}

// widget returns an object as an API server sends it.
func widget(n int) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"labels":{"n":"%[1]d"},"managedFields":[{"manager":"m","fieldsV1":{"f:spec":{}}}],"name":"widget-%[1]d","namespace":"default","resourceVersion":"%[1]d","uid":"uid-%[1]d"},"spec":{"text":"é \u003c\n%[1]d","ratio":0.5,"size":%[1]d,"list":[1,null,true]}}`, n)
}

func widgetList(count int) string {
	var items []string
	for n := range count {
		items = append(items, widget(n+1))
	}
	return `{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{"continue":"","resourceVersion":"900","remainingItemCount":2},"items":[` + strings.Join(items, ",") + `]}`
}

// bodies are response bodies of servers and proxies by description.
var bodies = map[string]string{
	"object":                  widget(1),
	"spaces":                  "\n " + widget(1) + " \n",
	"list":                    widgetList(3),
	"empty list":              widgetList(0),
	"list without items":      `{"apiVersion":"v1","kind":"WidgetList","metadata":{}}`,
	"list of null":            `{"apiVersion":"v1","kind":"WidgetList","items":null}`,
	"list with null":          `{"apiVersion":"v1","kind":"WidgetList","items":[null]}`,
	"list of numbers":         `{"apiVersion":"v1","kind":"WidgetList","items":[1]}`,
	"items twice":             `{"apiVersion":"v1","kind":"WidgetList","items":[{"a":1}],"items":[{"b":1}]}`,
	"typed items":             `{"apiVersion":"v1","kind":"ConfigMapList","items":[{"metadata":{"name":"a"}},{"kind":"Other"},{"apiVersion":"v2"}]}`,
	"list of no list kind":    `{"apiVersion":"v1","kind":"Widgets","items":[{}]}`,
	"Status":                  `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"gone","reason":"Expired","code":410}`,
	"Status of another group": `{"kind":"Status","apiVersion":"example.com/v1","metadata":{},"status":"Failure","code":410}`,
	"Status that succeeded":   `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`,
	"APIResourceList":         `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[]}`,
	"Table":                   `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[{"name":"Name","type":"string"}],"rows":[{"cells":["a",1],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}}]}`,
	"PartialObjectMetadata":   `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}`,
	"metadata list":           `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[{"metadata":{"name":"a"}}]}`,
	"no kind":                 `{"apiVersion":"v1","metadata":{}}`,
	"no version":              `{"kind":"Widget","metadata":{}}`,
	"odd version":             `{"apiVersion":"a/b/c","kind":"Widget"}`,
	"slash":                   `{"apiVersion":"/","kind":"Widget"}`,
	"kind is a number":        `{"apiVersion":"v1","kind":1}`,
	"kind is null":            `{"apiVersion":"v1","kind":null}`,
	"version is a number":     `{"apiVersion":1,"kind":"Widget"}`,
	"kind twice":              `{"apiVersion":"v1","kind":"Widget","kind":"Gadget"}`,
	"kind twice, once wrong":  `{"apiVersion":"v1","kind":1,"kind":"Gadget"}`,
	"other case":              `{"APIVersion":"v1","Kind":"Widget","apiVersion":"v1","kind":"Gadget"}`,
	"kind in another case":    `{"apiVersion":"v1","kind":"Widget","Kind":"Status"}`,
	"Kind before kind":        `{"KIND":"Status","apiVersion":"v1","kind":"Widget"}`,
	"version in another case": `{"apiVersion":"example.com/v1","kind":"Widget","apiversion":"v1"}`,
	"kind with another k":     `{"apiVersion":"v1","kind":"Widget","` + "\u212a" + `ind":"Status"}`,
	"list in another case":    `{"apiVersion":"v1","kind":"WidgetList","Kind":"GadgetList","items":[{"metadata":{"name":"a"}}]}`,
	"items in another case":   `{"apiVersion":"v1","kind":"WidgetList","items":[{"Kind":"A","metadata":{"name":"a"}},{"apiVersion":"v2","kind":"B","Kind":"C"}]}`,
	"escaped keys":            `{"\u0061piVersion":"v1","\u006bind":"Widget"}`,
	"number out of range":     `{"apiVersion":"v1","kind":"Widget","n":1e999}`,
	"truncated":               widget(1)[:100],
	"truncated list":          widgetList(3)[:600],
	"two":                     widget(1) + widget(2),
	"HTML":                    "<html>502 Bad Gateway</html>",
	"text":                    "service unavailable",
	"null":                    "null",
	"array":                   "[" + widget(1) + "]",
	"string":                  `"Widget"`,
	"empty":                   "",
	"invalid UTF-8":           `{"apiVersion":"v1","kind":"Widget","text":"` + "\xff" + `"}`,
	"nested too deeply": `{"apiVersion":"v1","kind":"Widget","deep":` + strings.Repeat("[", 10_000) +
		strings.Repeat("]", 10_000) + `}`,
	"metadata is not a map":    `{"apiVersion":"v1","kind":"Widget","metadata":"a"}`,
	"an object that has items": `{"apiVersion":"v1","kind":"Widget","items":[{"a":1}],"metadata":{"name":"a"}}`,
}

// diff is cmp.Diff with a shortcut for equal values, because cmp needs minutes for deep nesting.
func diff(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

// brokenSerializer fails to decode.
type brokenSerializer struct{ runtime.NegotiatedSerializer }

func (b brokenSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := b.NegotiatedSerializer.SupportedMediaTypes()
	for i := range infos {
		infos[i].Serializer = brokenDecoder{infos[i].Serializer}
		if infos[i].StreamSerializer != nil {
			stream := *infos[i].StreamSerializer
			stream.Serializer = brokenDecoder{stream.Serializer}
			infos[i].StreamSerializer = &stream
		}
	}
	return infos
}

type brokenDecoder struct{ runtime.Serializer }

func (brokenDecoder) Decode([]byte, *schema.GroupVersionKind,
	runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	return nil, nil, errors.New("broken")
}

// lists are response bodies of list requests by description, in addition to bodies.
var lists = map[string]string{
	"items last": widgetList(5),
	"items first": `{"apiVersion":"example.com/v1","items":[` + widget(1) + "," + widget(2) +
		`],"kind":"WidgetList","metadata":{"continue":"more","resourceVersion":"12","remainingItemCount":7,"selfLink":"/x"}}`,
	"built-in":            `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"},"spec":{}}]}`,
	"built-in, kind late": `{"items":[{"metadata":{"name":"a"}},{"kind":"Odd","apiVersion":"v2","metadata":{"name":"b"}}],"kind":"PodList","apiVersion":"v1"}`,
	"spaces": " {\n \"apiVersion\" : \"v1\" , \"kind\" : \"WidgetList\" , \"items\" : [ " +
		widget(1) + " , " + widget(2) + " ] , \"metadata\" : { } }\n ",
	"null metadata":     `{"apiVersion":"v1","kind":"WidgetList","metadata":null,"items":[]}`,
	"unknown fields":    `{"apiVersion":"v1","kind":"WidgetList","a":{"b":[1,2,{"c":null}]},"n":12.5,"items":[` + widget(1) + `]}`,
	"kind of item only": `{"apiVersion":"v1","kind":"WidgetList","items":[{"kind":"Widget","metadata":{"name":"a"}},{"apiVersion":"v1","metadata":{"name":"b"}}]}`,
	"empty item":        `{"apiVersion":"v1","kind":"WidgetList","items":[{}]}`,
	"null item":         `{"apiVersion":"v1","kind":"WidgetList","items":[null]}`,
	"items twice": `{"apiVersion":"v1","kind":"WidgetList","items":[` + widget(1) + `],"items":[` +
		widget(2) + `]}`,
	"metadata twice":     `{"apiVersion":"v1","kind":"WidgetList","metadata":{},"metadata":{"resourceVersion":"1"},"items":[]}`,
	"a comma too many":   `{"apiVersion":"v1","kind":"WidgetList","items":[` + widget(1) + `,]}`,
	"no comma":           `{"apiVersion":"v1","kind":"WidgetList","items":[` + widget(1) + widget(2) + `]}`,
	"a comma at the end": `{"apiVersion":"v1","kind":"WidgetList","items":[],}`,
	"more after it":      widgetList(1) + "x",
	"another after it":   widgetList(1) + widgetList(1),
	"Status":             `{"apiVersion":"v1","kind":"Status","items":[]}`,
	"Table with items":   `{"apiVersion":"meta.k8s.io/v1","kind":"Table","items":[]}`,
	"escaped key":        `{"apiVersion":"v1","kind":"WidgetList","\u0069tems":[` + widget(1) + `]}`,
	"large item": `{"apiVersion":"v1","kind":"WidgetList","items":[` + large + "," +
		widget(1) + `]}`,
}

// checkListLikeStock fails the test if ReadList returns another list than client-go's decoder. It returns
// false for ErrUnsupportedList.
func checkListLikeStock(t *testing.T, data string, wrap func(io.Reader) io.Reader) (supported bool) {
	t.Helper()
	want := &unstructured.UnstructuredList{}
	_, _, wantErr := jsonInfo(t, clientGoSerializer()).Serializer.Decode([]byte(data), nil, want)
	got, err := codec.ReadList(wrap(strings.NewReader(data)), nil)
	if errors.Is(err, codec.ErrUnsupportedList) {
		return false
	}
	if err != nil || wantErr != nil {
		t.Fatalf("ReadList() = %v, client-go's decoder returns %v, want no errors", err, wantErr)
	}
	items := make([]unstructured.Unstructured, 0, len(got.Items))
	for _, item := range got.Items {
		items = append(items, *item.Unstructured())
	}
	if diff := diff(want.Items, items); diff != "" {
		t.Fatalf("items (-stock +packed)\n%.3000s", diff)
	}
	type envelope struct {
		Version, Continue, Self string
		Remaining               any
		Kind                    any
	}
	a := envelope{want.GetResourceVersion(), want.GetContinue(), want.GetSelfLink(),
		want.GetRemainingItemCount(), want.GroupVersionKind()}
	b := envelope{got.ResourceVersion, got.Continue, got.GetSelfLink(), got.RemainingItemCount,
		got.GroupVersionKind()}
	if diff := diff(a, b); diff != "" {
		t.Fatalf("(-stock +packed)\n%s", diff)
	}
	return true
}

func TestReadList(t *testing.T) {
	supported := []string{"items last", "items first", "built-in", "built-in, kind late", "spaces",
		"null metadata", "unknown fields", "escaped key", "large item"}
	for name, data := range lists {
		for kind, wrap := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader,
			"eof": iotest.DataErrReader,
		} {
			if kind != "whole" && len(data) > 1<<20 {
				continue
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				if got := checkListLikeStock(t, data, wrap); got != slices.Contains(supported, name) {
					t.Errorf("ReadList read the list itself: %v, want %v", got, !got)
				}
			})
		}
	}
	for name, data := range bodies {
		t.Run(name, func(t *testing.T) { checkListLikeStock(t, data, iotest.HalfReader) })
	}
}

func FuzzReadList(f *testing.F) {
	for _, all := range []map[string]string{lists, bodies} {
		for _, data := range all {
			if len(data) < 10_000 {
				f.Add(data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data string) {
		checkListLikeStock(t, data, func(r io.Reader) io.Reader { return r })
	})
}
