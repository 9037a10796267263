package codec_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/crdcache/crdcache/internal/codec"
	"github.com/crdcache/crdcache/internal/packed"
)

// replayPacked is replay for a codec that packs. Objects are decoded when the stream is over, so that those that
// refer to its buffers are found out. Unpacked tells how many were not packed. What a feed brings, and what is
// read inline, is the same.
func replayPacked(t testing.TB, packer *packed.Packer, stream func() io.Reader) (steps []step, unpacked int) {
	t.Helper()
	steps = replay(t, codec.WrapPacked(stock(), packer, nil), stream())
	fed, _ := replayFed(t, packer, stream())
	unpacked = unpack(steps)
	unpack(fed)
	if diff := differ(steps, fed); diff != "" {
		t.Errorf("(-handed over by client-go +fed)\n%.3000s", diff)
	}
	inline := replayInline(t, packer, stream())
	unpack(inline)
	if diff := differ(steps, inline); diff != "" {
		t.Errorf("(-handed over by client-go +inline)\n%.3000s", diff)
	}
	return steps, unpacked
}

func unpack(steps []step) (unpacked int) {
	for i := range steps {
		switch object := steps[i].Object.(type) {
		case *packed.Object:
			steps[i].Object = object.Unstructured()
		case *unstructured.Unstructured:
			unpacked++
		}
	}
	return unpacked
}

// isLikeStock reports whether steps are what stock has, but for where a stream with wrong syntax is given up.
func isLikeStock(want, got []step) string {
	n := len(want) - 1
	if len(got) == n+1 && want[n].Ended == "an error" && got[n].Ended != "" {
		want[n].Ended = got[n].Ended
	}
	return differ(want, got)
}

func TestPackedStreamsAreStock(t *testing.T) {
	readers := map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r },
		"bytes": iotest.OneByteReader,
		"half":  iotest.HalfReader,
		"eof":   iotest.DataErrReader,
		"fails": func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(io.ErrClosedPipe)) },
	}
	for name, stream := range streams {
		for kind, wrap := range readers {
			if kind != "whole" && len(stream) > 1<<20 {
				continue
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				want := replay(t, stock(), wrap(strings.NewReader(stream)))
				got, unpacked := replayPacked(t, nil, func() io.Reader { return wrap(strings.NewReader(stream)) })
				if diff := isLikeStock(want, got); diff != "" {
					t.Errorf("(-stock +packed)\n%.3000s", diff)
				}
				if unpacked > 0 && name != "Table" {
					t.Errorf("%d objects were not packed", unpacked)
				}
			})
		}
	}
}

func TestPackedTruncatedStreams(t *testing.T) {
	stream := event("ADDED", widget(1)) + event("BOOKMARK", bookmark)
	for n := range stream {
		want := replay(t, stock(), strings.NewReader(stream[:n]))
		got, _ := replayPacked(t, nil, func() io.Reader { return strings.NewReader(stream[:n]) })
		if diff := isLikeStock(want, got); diff != "" {
			t.Fatalf("after %q (-stock +packed)\n%s", stream[:n], diff)
		}
	}
}

func FuzzPackedStreamsAreStock(f *testing.F) {
	for name, stream := range streams {
		if len(stream) < 10_000 && name != "large" {
			f.Add(stream)
		}
	}
	f.Fuzz(func(t *testing.T, stream string) {
		want := replay(t, stock(), strings.NewReader(stream))
		got, _ := replayPacked(t, nil, func() io.Reader { return iotest.HalfReader(strings.NewReader(stream)) })
		if diff := isLikeStock(want, got); diff != "" {
			t.Errorf("(-stock +packed)\n%s", diff)
		}
	})
}

// TestPackedBookmark checks what the reflector asks of the bookmark that ends a watch-list.
func TestPackedBookmark(t *testing.T) {
	pruner, err := packed.NewPruner(packed.Prune{ManagedFields: true, LastApplied: true, Paths: []packed.Path{{{Key: "metadata"}, {Key: "annotations"}}}})
	if err != nil {
		t.Fatal(err)
	}
	steps := replay(t, codec.WrapPacked(stock(), packed.NewPacker(pruner), nil), strings.NewReader(event("BOOKMARK", bookmark)))
	m, err := meta.Accessor(steps[0].Object)
	if err != nil {
		t.Fatal(err)
	}
	if m.GetResourceVersion() != "12" || m.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("got the version %q and the annotations %v", m.GetResourceVersion(), m.GetAnnotations())
	}
	if _, ok := steps[0].Object.(*packed.Object); !ok {
		t.Errorf("got a %T, which the reflector refuses", steps[0].Object)
	}
}

// TestPackedFastPath checks that usual events and lists never reach the stock serializer.
func TestPackedFastPath(t *testing.T) {
	var stream strings.Builder
	for n := range 500 {
		stream.WriteString(event("ADDED", widget(n)))
	}
	broken := codec.WrapPacked(&brokenSerializer{jsonInfo(t, stock())}, nil, nil)
	steps := replay(t, broken, iotest.HalfReader(strings.NewReader(stream.String()+event("BOOKMARK", bookmark))))
	if len(steps) != 502 || steps[501].Ended != io.EOF.Error() {
		t.Errorf("got %d steps, the last one %v", len(steps), steps[len(steps)-1])
	}
}

// TestPackedOversizedFrame checks that frames larger than client-go allows end the watch, and that what is read of
// them is bounded.
func TestPackedOversizedFrame(t *testing.T) {
	for name, stream := range map[string]io.Reader{
		"line":    strings.NewReader(event("ADDED", `{"a":"`+strings.Repeat("x", 17<<20)+`"}`) + event("ADDED", widget(1))),
		"endless": io.MultiReader(strings.NewReader(`{"type":"ADDED","object":{"a":"`), endless{}),
	} {
		info := jsonInfo(t, codec.WrapPacked(stock(), nil, nil))
		reader := info.StreamSerializer.Framer.NewFrameReader(io.NopCloser(stream))
		decoder := restwatch.NewDecoder(streaming.NewDecoder(reader, info.StreamSerializer.Serializer), info.Serializer)
		if _, _, err := decoder.Decode(); !errors.Is(err, streaming.ErrObjectTooLarge) {
			t.Errorf("%s: got %v", name, err)
		}
		decoder.Close()
	}
}

// endless is text without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestPackedLargestFrame reads a frame that is as large as client-go allows.
func TestPackedLargestFrame(t *testing.T) {
	const around = `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Widget","a":""}}`
	stream := `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Widget","a":"` + strings.Repeat("x", 16<<20-len(around)) + `"}}` + "\n" + event("ADDED", widget(1))
	steps := replay(t, codec.WrapPacked(stock(), nil, nil), strings.NewReader(stream))
	if len(steps) != 3 || steps[2].Ended != io.EOF.Error() {
		t.Fatalf("got %d steps, the last one %v", len(steps), steps[len(steps)-1])
	}
	for i, size := range []int{16<<20 - len(`{"type":"ADDED","object":}`), len(widget(1))} {
		if o, ok := steps[i].Object.(*packed.Object); !ok || o.Len() != size {
			t.Errorf("frame %d: got a %T", i, steps[i].Object)
		}
	}
}

// lists are bodies beside those of single objects that a list request may be answered with.
var lists = map[string]string{
	"items last":          widgetList(5),
	"items first":         `{"apiVersion":"example.com/v1","items":[` + widget(1) + "," + widget(2) + `],"kind":"WidgetList","metadata":{"continue":"more","resourceVersion":"12","remainingItemCount":7,"selfLink":"/x"}}`,
	"built-in":            `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"},"spec":{}}]}`,
	"built-in, kind late": `{"items":[{"metadata":{"name":"a"}},{"kind":"Odd","apiVersion":"v2","metadata":{"name":"b"}}],"kind":"PodList","apiVersion":"v1"}`,
	"spaces":              " {\n \"apiVersion\" : \"v1\" , \"kind\" : \"WidgetList\" , \"items\" : [ " + widget(1) + " , " + widget(2) + " ] , \"metadata\" : { } }\n ",
	"null metadata":       `{"apiVersion":"v1","kind":"WidgetList","metadata":null,"items":[]}`,
	"unknown fields":      `{"apiVersion":"v1","kind":"WidgetList","a":{"b":[1,2,{"c":null}]},"n":12.5,"items":[` + widget(1) + `]}`,
	"kind of item only":   `{"apiVersion":"v1","kind":"WidgetList","items":[{"kind":"Widget","metadata":{"name":"a"}},{"apiVersion":"v1","metadata":{"name":"b"}}]}`,
	"empty item":          `{"apiVersion":"v1","kind":"WidgetList","items":[{}]}`,
	"null item":           `{"apiVersion":"v1","kind":"WidgetList","items":[null]}`,
	"items twice":         `{"apiVersion":"v1","kind":"WidgetList","items":[` + widget(1) + `],"items":[` + widget(2) + `]}`,
	"metadata twice":      `{"apiVersion":"v1","kind":"WidgetList","metadata":{},"metadata":{"resourceVersion":"1"},"items":[]}`,
	"a comma too many":    `{"apiVersion":"v1","kind":"WidgetList","items":[` + widget(1) + `,]}`,
	"no comma":            `{"apiVersion":"v1","kind":"WidgetList","items":[` + widget(1) + widget(2) + `]}`,
	"a comma at the end":  `{"apiVersion":"v1","kind":"WidgetList","items":[],}`,
	"more after it":       widgetList(1) + "x",
	"another after it":    widgetList(1) + widgetList(1),
	"Status":              `{"apiVersion":"v1","kind":"Status","items":[]}`,
	"Table with items":    `{"apiVersion":"meta.k8s.io/v1","kind":"Table","items":[]}`,
	"escaped key":         `{"apiVersion":"v1","kind":"WidgetList","\u0069tems":[` + widget(1) + `]}`,
	"large item":          `{"apiVersion":"v1","kind":"WidgetList","items":[` + large + "," + widget(1) + `]}`,
}

// listLikeStock fails unless ReadList makes of data what stock does, or leaves it to it.
func listLikeStock(t *testing.T, data string, wrap func(io.Reader) io.Reader) (usual bool) {
	t.Helper()
	want := &unstructured.UnstructuredList{}
	_, _, wantErr := jsonInfo(t, stock()).Serializer.Decode([]byte(data), nil, want)
	got, err := codec.ReadList(wrap(strings.NewReader(data)), nil)
	if errors.Is(err, codec.ErrUnusual) {
		return false
	}
	if err != nil || wantErr != nil {
		t.Fatalf("got %v, want %v", err, wantErr)
	}
	items := make([]unstructured.Unstructured, 0, len(got.Items))
	for _, item := range got.Items {
		items = append(items, *item.Unstructured())
	}
	if diff := differ(want.Items, items); diff != "" {
		t.Fatalf("items (-stock +packed)\n%.3000s", diff)
	}
	type envelope struct {
		Version, Continue, Self string
		Remaining               any
		Kind                    any
	}
	a := envelope{want.GetResourceVersion(), want.GetContinue(), want.GetSelfLink(), want.GetRemainingItemCount(), want.GroupVersionKind()}
	b := envelope{got.ResourceVersion, got.Continue, got.GetSelfLink(), got.RemainingItemCount, got.GroupVersionKind()}
	if diff := differ(a, b); diff != "" {
		t.Fatalf("(-stock +packed)\n%s", diff)
	}
	return true
}

func TestReadList(t *testing.T) {
	usual := []string{"items last", "items first", "built-in", "built-in, kind late", "spaces", "null metadata", "unknown fields", "escaped key", "large item"}
	for name, data := range lists {
		for kind, wrap := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "eof": iotest.DataErrReader,
		} {
			if kind != "whole" && len(data) > 1<<20 {
				continue
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				if got := listLikeStock(t, data, wrap); got != slices.Contains(usual, name) {
					t.Errorf("read directly: %v", got)
				}
			})
		}
	}
	for name, data := range bodies {
		t.Run(name, func(t *testing.T) { listLikeStock(t, data, iotest.HalfReader) })
	}
}

// TestReadListFails checks that a list that breaks off is not taken for a shorter one.
func TestReadListFails(t *testing.T) {
	data := widgetList(300)
	for _, n := range []int{0, 1, 100, len(data) / 2, len(data) - 1} {
		_, err := codec.ReadList(io.MultiReader(strings.NewReader(data[:n]), iotest.ErrReader(io.ErrUnexpectedEOF)), nil)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after %d bytes: got %v", n, err)
		}
		if _, err := codec.ReadList(strings.NewReader(data[:n]), nil); !errors.Is(err, codec.ErrUnusual) {
			t.Errorf("%d bytes: got %v", n, err)
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
		listLikeStock(t, data, func(r io.Reader) io.Reader { return r })
	})
}

// TestPackedOtherFormats checks that what comes in another format is packed, too.
func TestPackedOtherFormats(t *testing.T) {
	info := jsonInfo(t, stock())
	other := info
	other.MediaType = "application/other"
	s := codec.WrapPacked(&brokenSerializer{other}, nil, nil).SupportedMediaTypes()[0]
	if _, _, err := s.Serializer.Decode([]byte(widget(1)), nil, nil); err == nil {
		t.Error("an error is lost")
	}
	both := codec.WrapPacked(twoFormats{stock(), other}, nil, nil).SupportedMediaTypes()
	object, _, err := both[1].Serializer.Decode([]byte(widget(1)), nil, nil)
	if _, ok := object.(*packed.Object); err != nil || !ok {
		t.Errorf("got a %T and %v", object, err)
	}
}

// twoFormats has one more format.
type twoFormats struct {
	runtime.NegotiatedSerializer
	more runtime.SerializerInfo
}

func (f twoFormats) SupportedMediaTypes() []runtime.SerializerInfo {
	return []runtime.SerializerInfo{f.NegotiatedSerializer.SupportedMediaTypes()[0], f.more}
}
