package codec_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/crdcache/crdcache/internal/codec"
	"github.com/crdcache/crdcache/internal/packed"
)

func event(kind, object string) string { return `{"type":"` + kind + `","object":` + object + "}\n" }

const bookmark = `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"resourceVersion":"12","annotations":{"k8s.io/initial-events-end":"true"}}}`

// streams are watch streams by description.
var streams = map[string]string{
	"events": event("ADDED", widget(1)) + event("MODIFIED", widget(2)) + event("DELETED",
		widget(3)) + event("BOOKMARK", bookmark),
	"error event": event("ADDED", widget(1)) + event("ERROR", bodies["Status"]) +
		event("ADDED", widget(2)),
	"nothing":             "",
	"white space":         " \n\r\n\t ",
	"white space between": "\n \n" + event("ADDED", widget(1)) + "\r\n\r\n" + event("ADDED", widget(2)),
	"no newlines": strings.TrimSpace(event("ADDED", widget(1))) +
		strings.TrimSpace(event("ADDED", widget(2))),
	"spaces in events": `{ "type": "ADDED", "object": ` + widget(1) + ` }` + "\n" +
		event("ADDED", widget(2)),
	"spaces at the end": `{"type":"ADDED","object":` + widget(1) + ` }` + event("ADDED", widget(2)),
	"pretty": "{\n\"type\":\"ADDED\",\n\"object\":\n" + widget(1) + "\n}\n" +
		event("ADDED", widget(2)),
	"object first": `{"object":` + widget(1) + `,"type":"ADDED"}` + event("ADDED", widget(2)),
	"more fields": `{"type":"ADDED","object":` + widget(1) + `,"more":{"a":"}"}}` +
		event("ADDED", widget(2)),
	"object twice": `{"type":"ADDED","object":` + widget(1) + `,"object":` + widget(3) + `}` +
		event("ADDED", widget(2)),
	"brackets in strings": event("ADDED",
		`{"apiVersion":"v1","kind":"Widget","a":"}]\"}\\","b":"{[\\\"{"}`) + event("ADDED", widget(2)),
	"unknown type":     event("RENAMED", widget(1)) + event("ADDED", widget(2)),
	"type is a prefix": event("ADDEDMORE", widget(1)),
	"escaped type":     event(`\u0041DDED`, widget(1)) + event("ADDED", widget(2)),
	"no type":          `{"object":` + widget(1) + `}`,
	"null object":      event("ADDED", "null") + event("ADDED", widget(2)),
	"array object":     event("ADDED", "[]"),
	"Table":            event("ADDED", bodies["Table"]),
	"metadata":         event("ADDED", bodies["PartialObjectMetadata"]),
	"kind in the event": `{"kind":"WatchEvent","apiVersion":"v1","type":"ADDED","object":` +
		widget(1) + "}\n",
	"bad Status": event("ERROR", `{"kind":"Status","apiVersion":"v1","code":"x"}`),
	"an object not valid": event("ADDED", `{"apiVersion":"v1","kind":"Widget","a":tru}`) +
		event("ADDED", widget(2)),
	"no kind": event("ADDED", `{"apiVersion":"v1"}`) + event("ADDED", widget(2)),
	"deep": event("ADDED", `{"apiVersion":"v1","kind":"Widget","a":`+strings.Repeat("[",
		6000)+strings.Repeat("]", 6000)+`}`) + event("ADDED", widget(2)),
	"too deep in all": event("ADDED", strings.Repeat(`{"a":`, 9999)+"{}"+strings.Repeat("}", 9999)),
	"truncated":       event("ADDED", widget(1)) + event("ADDED", widget(2))[:200],
	"newline in a string": event("ADDED", widget(1)) + `{"type":"ADDED","object":{"a":"b` + "\n" +
		event("ADDED", widget(2)),
	"escaped newline": event("ADDED", widget(1)) + `{"type":"ADDED","object":{"a":"b\` + "\n" + `"}}` +
		"\n" + event("ADDED", widget(2)),
	"escaped control byte": event("ADDED", `{"apiVersion":"v1","kind":"Widget","a":"b\`+"\x01"+`c"}`) +
		event("ADDED", widget(2)),
	"another case": event("ADDED",
		`{"apiVersion":"v1","kind":"Widget","Kind":"Status","metadata":{"name":"a"}}`) +
		event("ADDED", widget(2)),
	"HTML":           event("ADDED", widget(1)) + "<html>\n" + event("ADDED", widget(2)),
	"wrong brackets": event("ADDED", widget(1)) + "{]\n" + event("ADDED", widget(2)),
	"open brackets":  "{{{{{{{\n" + event("ADDED", widget(2)),
	"number":         event("ADDED", widget(1)) + "12\n",
	"null":           "null\n" + event("ADDED", widget(2)),
	"large":          event("ADDED", large) + event("MODIFIED", widget(2)) + event("ADDED", large),
}

// large is an object of 1.5 MB.
var large = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"large"},"data":"` +
	strings.Repeat("0123456789", 150_000) + `"}`

// step is the result of one call of a watch decoder. Errors are only compared by whether they end the stream
// cleanly, because Events reports syntax errors later and with other texts.
type step struct {
	Type   string
	Object runtime.Object
	Ended  string
}

// replay decodes a stream with client-go's decoders.
func replay(t testing.TB, stream io.Reader) []step {
	t.Helper()
	info := jsonInfo(t, clientGoSerializer())
	reader := info.StreamSerializer.Framer.NewFrameReader(io.NopCloser(stream))
	decoder := restwatch.NewDecoder(streaming.NewDecoder(reader, info.StreamSerializer.Serializer),
		info.Serializer)
	defer decoder.Close()
	return steps(decoder.Decode)
}

// replayPacked reads a stream with Events. unpacked counts the objects that were not packed. Objects are
// decoded after the end of the stream, to detect references to its buffers.
func replayPacked(packer *packed.Packer, stream io.Reader) (all []step, unpacked int) {
	events := codec.NewEvents(io.NopCloser(stream), clientGoSerializer(), packer)
	defer events.Close()
	all = steps(func() (watch.EventType, runtime.Object, error) {
		event, _, err := events.Next()
		return event.Type, event.Object, err
	})
	for i := range all {
		switch object := all[i].Object.(type) {
		case *packed.Object:
			all[i].Object = object.Unstructured()
		case *unstructured.Unstructured:
			unpacked++
		}
	}
	return all, unpacked
}

// steps calls next until it returns an error.
func steps(next func() (watch.EventType, runtime.Object, error)) (all []step) {
	for {
		kind, object, err := next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe):
			return append(all, step{Ended: err.Error()})
		case err != nil:
			return append(all, step{Ended: "an error"})
		}
		all = append(all, step{Type: string(kind), Object: object})
	}
}

// diffSteps returns the differences from the steps of client-go's decoder (want). Streams with syntax errors
// may end earlier or later.
func diffSteps(want, got []step) string {
	n := len(want) - 1
	if len(got) == n+1 && want[n].Ended == "an error" && got[n].Ended != "" {
		want[n].Ended = got[n].Ended
	}
	return diff(want, got)
}

func TestStreamsAreStock(t *testing.T) {
	readers := map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r },
		"bytes": iotest.OneByteReader,
		"half":  iotest.HalfReader,
		"eof":   iotest.DataErrReader,
		"fails": func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(io.ErrClosedPipe)) },
	}
	for name, stream := range streams {
		for kind, wrap := range readers {
			if kind != "whole" && len(stream) > 1<<20 { // large streams are tested with one reader only
				continue
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				want := replay(t, wrap(strings.NewReader(stream)))
				got, unpacked := replayPacked(nil, wrap(strings.NewReader(stream)))
				if diff := diffSteps(want, got); diff != "" {
					t.Errorf("(-stock +packed)\n%.3000s", diff)
				}
				if unpacked > 0 && name != "Table" {
					t.Errorf("%d objects were not packed, want 0", unpacked)
				}
			})
		}
	}
}

func FuzzStreamsAreStock(f *testing.F) {
	for name, stream := range streams {
		if len(stream) < 10_000 && name != "large" {
			f.Add(stream)
		}
	}
	f.Fuzz(func(t *testing.T, stream string) {
		want := replay(t, strings.NewReader(stream))
		got, _ := replayPacked(nil, iotest.HalfReader(strings.NewReader(stream)))
		if diff := diffSteps(want, got); diff != "" {
			t.Errorf("(-stock +packed)\n%s", diff)
		}
	})
}

// TestBookmarkIsKept checks the fields that the reflector needs of the bookmark at the end of a watch-list.
func TestBookmarkIsKept(t *testing.T) {
	pruner, err := packed.NewPruner(packed.Prune{ManagedFields: true, LastApplied: true,
		Paths: []packed.Path{{{Key: "metadata"}, {Key: "annotations"}}}})
	if err != nil {
		t.Fatal(err)
	}
	next, _, err := codec.NewEvents(io.NopCloser(strings.NewReader(event("BOOKMARK", bookmark))),
		clientGoSerializer(),
		packed.NewPacker(pruner)).Next()
	if err != nil {
		t.Fatal(err)
	}
	m, ok := next.Object.(*packed.Object)
	if !ok {
		t.Fatalf("the bookmark is a %T, which the reflector rejects", next.Object)
	}
	if m.GetResourceVersion() != "12" || m.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("the bookmark has the version %q and the annotations %v, want 12 and initial-events-end",
			m.GetResourceVersion(), m.GetAnnotations())
	}
}

// TestFastPath checks that typical events never reach the stock serializer.
func TestFastPath(t *testing.T) {
	var stream strings.Builder
	for n := range 500 {
		stream.WriteString(event("ADDED", widget(n)))
	}
	all := io.NopCloser(iotest.HalfReader(strings.NewReader(stream.String() + event("BOOKMARK", bookmark))))
	events := codec.NewEvents(all, brokenSerializer{clientGoSerializer()}, nil)
	for n := range 501 {
		if _, _, err := events.Next(); err != nil {
			t.Fatalf("event %d: %v", n, err)
		}
	}
	if _, _, err := events.Next(); err != io.EOF {
		t.Errorf("Next() at the end = %v, want io.EOF", err)
	}
}

// TestOversizedFrame checks that frames larger than client-go allows end the watch, and that reading of them
// is bounded.
func TestOversizedFrame(t *testing.T) {
	for name, stream := range map[string]io.Reader{
		"line": strings.NewReader(event("ADDED", `{"a":"`+strings.Repeat("x", 17<<20)+`"}`) +
			event("ADDED", widget(1))),
		"endless": io.MultiReader(strings.NewReader(`{"type":"ADDED","object":{"a":"`), endless{}),
	} {
		events := codec.NewEvents(io.NopCloser(stream), clientGoSerializer(), nil)
		if _, _, err := events.Next(); !errors.Is(err, streaming.ErrObjectTooLarge) {
			t.Errorf("%s: Next() = %v, want ErrObjectTooLarge", name, err)
		}
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
