package codec_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/codec"
)

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

// TestCheckList verifies that no answer without a list is taken for an empty list.
func TestCheckList(t *testing.T) {
	for body, want := range map[string]string{
		`{"apiVersion":"v1","kind":"WidgetList","items":[]}`:                                           "",
		`{"apiVersion":"v1","kind":"WidgetList","items":null}`:                                         "",
		`{"apiVersion":"v1","kind":"Widgets","metadata":{"resourceVersion":"1"}}`:                      "",
		`{"apiVersion":"v1","kind":"Odd","metadata":{"name":"a"},"items":[{"metadata":{"name":"b"}}]}`: "",
		`{"apiVersion":"v1","kind":"Widget","metadata":{"name":"a"}}`:                                  "kind Widget, which is no list",
		`{"apiVersion":"meta.k8s.io/v1","kind":"Table","rows":[]}`:                                     "kind Table, which is no list",
		`{"apiVersion":"v1","kind":"Status","status":"Success"}`:                                       "kind Status, which is no list",
		`{"apiVersion":"v1","kind":"Status","status":"Failure","message":"gone","code":410}`:           "gone",
	} {
		list := &unstructured.UnstructuredList{}
		if err := list.UnmarshalJSON([]byte(body)); err != nil {
			t.Fatal(err)
		}
		if err := codec.CheckList(list); (err == nil) != (want == "") || err != nil &&
			!strings.Contains(err.Error(), want) {
			t.Errorf("CheckList(%s) = %v, want %q", body, err, want)
		}
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
