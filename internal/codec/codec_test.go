package codec_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
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
