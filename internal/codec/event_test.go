package codec_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/iotest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/crdcache/crdcache/internal/codec"
)

func event(kind, object string) string { return `{"type":"` + kind + `","object":` + object + "}\n" }

const bookmark = `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"resourceVersion":"12","annotations":{"k8s.io/initial-events-end":"true"}}}`

// streams are what a watch may deliver.
var streams = map[string]string{
	"events":               event("ADDED", widget(1)) + event("MODIFIED", widget(2)) + event("DELETED", widget(3)) + event("BOOKMARK", bookmark),
	"error event":          event("ADDED", widget(1)) + event("ERROR", bodies["Status"]) + event("ADDED", widget(2)),
	"nothing":              "",
	"white space":          " \n\r\n\t ",
	"white space between":  "\n \n" + event("ADDED", widget(1)) + "\r\n\r\n" + event("ADDED", widget(2)),
	"no newlines":          strings.TrimSpace(event("ADDED", widget(1))) + strings.TrimSpace(event("ADDED", widget(2))),
	"spaces in events":     `{ "type": "ADDED", "object": ` + widget(1) + ` }` + "\n" + event("ADDED", widget(2)),
	"spaces at the end":    `{"type":"ADDED","object":` + widget(1) + ` }` + event("ADDED", widget(2)),
	"pretty":               "{\n\"type\":\"ADDED\",\n\"object\":\n" + widget(1) + "\n}\n" + event("ADDED", widget(2)),
	"object first":         `{"object":` + widget(1) + `,"type":"ADDED"}` + event("ADDED", widget(2)),
	"more fields":          `{"type":"ADDED","object":` + widget(1) + `,"more":{"a":"}"}}` + event("ADDED", widget(2)),
	"object twice":         `{"type":"ADDED","object":` + widget(1) + `,"object":` + widget(3) + `}` + event("ADDED", widget(2)),
	"brackets in strings":  event("ADDED", `{"apiVersion":"v1","kind":"Widget","a":"}]\"}\\","b":"{[\\\"{"}`) + event("ADDED", widget(2)),
	"unknown type":         event("RENAMED", widget(1)) + event("ADDED", widget(2)),
	"type is a prefix":     event("ADDEDMORE", widget(1)),
	"escaped type":         event(`\u0041DDED`, widget(1)) + event("ADDED", widget(2)),
	"no type":              `{"object":` + widget(1) + `}`,
	"null object":          event("ADDED", "null") + event("ADDED", widget(2)),
	"array object":         event("ADDED", "[]"),
	"Table":                event("ADDED", bodies["Table"]),
	"metadata":             event("ADDED", bodies["PartialObjectMetadata"]),
	"kind in the event":    `{"kind":"WatchEvent","apiVersion":"v1","type":"ADDED","object":` + widget(1) + "}\n",
	"bad Status":           event("ERROR", `{"kind":"Status","apiVersion":"v1","code":"x"}`),
	"an object not valid":  event("ADDED", `{"apiVersion":"v1","kind":"Widget","a":tru}`) + event("ADDED", widget(2)),
	"no kind":              event("ADDED", `{"apiVersion":"v1"}`) + event("ADDED", widget(2)),
	"deep":                 event("ADDED", `{"apiVersion":"v1","kind":"Widget","a":`+strings.Repeat("[", 6000)+strings.Repeat("]", 6000)+`}`) + event("ADDED", widget(2)),
	"too deep in all":      event("ADDED", strings.Repeat(`{"a":`, 9999)+"{}"+strings.Repeat("}", 9999)),
	"truncated":            event("ADDED", widget(1)) + event("ADDED", widget(2))[:200],
	"newline in a string":  event("ADDED", widget(1)) + `{"type":"ADDED","object":{"a":"b` + "\n" + event("ADDED", widget(2)),
	"escaped newline":      event("ADDED", widget(1)) + `{"type":"ADDED","object":{"a":"b\` + "\n" + `"}}` + "\n" + event("ADDED", widget(2)),
	"escaped control byte": event("ADDED", `{"apiVersion":"v1","kind":"Widget","a":"b\`+"\x01"+`c"}`) + event("ADDED", widget(2)),
	"another case":         event("ADDED", `{"apiVersion":"v1","kind":"Widget","Kind":"Status","metadata":{"name":"a"}}`) + event("ADDED", widget(2)),
	"HTML":                 event("ADDED", widget(1)) + "<html>\n" + event("ADDED", widget(2)),
	"wrong brackets":       event("ADDED", widget(1)) + "{]\n" + event("ADDED", widget(2)),
	"open brackets":        "{{{{{{{\n" + event("ADDED", widget(2)),
	"number":               event("ADDED", widget(1)) + "12\n",
	"null":                 "null\n" + event("ADDED", widget(2)),
	"large":                event("ADDED", large) + event("MODIFIED", widget(2)) + event("ADDED", large),
}

// large is an object of 1.5 MB.
var large = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"large"},"data":"` + strings.Repeat("0123456789", 150_000) + `"}`

// step is what one call of a watch decoder says. Errors are compared by whether they end the stream
// cleanly: where syntax is wrong, our reader notices later, with other words.
type step struct {
	Type   string
	Object runtime.Object
	Ended  string
}

// replay decodes a stream with all the layers that client-go has for it.
func replay(t testing.TB, s runtime.NegotiatedSerializer, stream io.Reader) (steps []step) {
	t.Helper()
	for next := range decoded(t, s, stream) {
		steps = append(steps, next)
	}
	return steps
}

// decoded returns the steps of a stream one by one.
func decoded(t testing.TB, s runtime.NegotiatedSerializer, stream io.Reader) iter.Seq[step] {
	t.Helper()
	info := jsonInfo(t, s)
	reader := info.StreamSerializer.Framer.NewFrameReader(io.NopCloser(stream))
	decoder := restwatch.NewDecoder(streaming.NewDecoder(reader, info.StreamSerializer.Serializer), info.Serializer)
	return func(yield func(step) bool) {
		defer decoder.Close()
		for {
			kind, object, err := decoder.Decode()
			switch {
			case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe):
				yield(step{Ended: err.Error()})
				return
			case err != nil:
				yield(step{Ended: "an error"})
				return
			}
			if !yield(step{Type: string(kind), Object: object}) {
				return
			}
		}
	}
}

func TestStreamsAreStock(t *testing.T) {
	wrapped := codec.Wrap(stock())
	readers := map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r },
		"bytes": iotest.OneByteReader,
		"eof":   iotest.DataErrReader,
		"fails": func(r io.Reader) io.Reader { return io.MultiReader(r, iotest.ErrReader(io.ErrClosedPipe)) },
	}
	for name, stream := range streams {
		for kind, wrap := range readers {
			if kind != "whole" && len(stream) > 1<<20 { // one reader shows that size does not matter
				continue
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				want := replay(t, stock(), wrap(strings.NewReader(stream)))
				got := replay(t, wrapped, wrap(strings.NewReader(stream)))
				if diff := differ(want, got); diff != "" {
					t.Errorf("(-stock +codec)\n%.3000s", diff)
				}
			})
		}
	}
}

// TestTruncatedStreams ends a stream at every byte.
func TestTruncatedStreams(t *testing.T) {
	wrapped := codec.Wrap(stock())
	stream := event("ADDED", widget(1)) + event("BOOKMARK", bookmark)
	for n := range stream {
		want := replay(t, stock(), strings.NewReader(stream[:n]))
		if diff := differ(want, replay(t, wrapped, strings.NewReader(stream[:n]))); diff != "" {
			t.Fatalf("after %q (-stock +codec)\n%s", stream[:n], diff)
		}
	}
}

func TestGzippedStream(t *testing.T) {
	var buffer bytes.Buffer
	w := gzip.NewWriter(&buffer)
	fmt.Fprint(w, streams["events"])
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(&buffer)
	if err != nil {
		t.Fatal(err)
	}
	if diff := differ(replay(t, stock(), strings.NewReader(streams["events"])), replay(t, codec.Wrap(stock()), r)); diff != "" {
		t.Errorf("(-stock +codec)\n%s", diff)
	}
}

// TestFrameBufferReuse keeps an object while its frame's buffer gets the next ones.
func TestFrameBufferReuse(t *testing.T) {
	var stream strings.Builder
	for n := range 100 {
		stream.WriteString(event("ADDED", widget(n)))
	}
	steps := replay(t, codec.Wrap(stock()), strings.NewReader(stream.String()))
	if diff := differ(replay(t, stock(), strings.NewReader(stream.String())), steps); diff != "" {
		t.Errorf("objects changed after they were decoded (-stock +codec)\n%s", diff)
	}
}

// TestOversizedFrame checks that a frame larger than client-go allows fails, and that the next one is read.
func TestOversizedFrame(t *testing.T) {
	info := jsonInfo(t, codec.Wrap(stock()))
	stream := event("ADDED", `{"a":"`+strings.Repeat("x", 17<<20)+`"}`) + event("ADDED", widget(1))
	decoder := streaming.NewDecoder(info.StreamSerializer.Framer.NewFrameReader(io.NopCloser(strings.NewReader(stream))), info.StreamSerializer.Serializer)
	if _, _, err := decoder.Decode(nil, &metav1.WatchEvent{}); !errors.Is(err, streaming.ErrObjectTooLarge) {
		t.Fatalf("got %v", err)
	}
	var next metav1.WatchEvent
	if _, _, err := decoder.Decode(nil, &next); err != nil || string(next.Object.Raw) != widget(1) {
		t.Fatalf("got %v and %s", err, next.Object.Raw)
	}
}

func FuzzStreamsAreStock(f *testing.F) {
	for name, stream := range streams {
		if name != "large" {
			f.Add(stream)
		}
	}
	wrapped := codec.Wrap(stock())
	f.Fuzz(func(t *testing.T, stream string) {
		want, got := replay(t, stock(), strings.NewReader(stream)), replay(t, wrapped, strings.NewReader(stream))
		// Where the stock reader stops at wrong syntax, ours may find the end of the stream first.
		if n := len(want) - 1; len(got) == n+1 && want[n].Ended == "an error" && got[n].Ended != "" {
			want[n].Ended = got[n].Ended
		}
		if diff := differ(want, got); diff != "" {
			t.Errorf("(-stock +codec)\n%s", diff)
		}
	})
}
