package codec_test

import (
	"errors"
	"io"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/crdcache/crdcache/internal/codec"
)

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestIdleWatchesHaveNoBuffer checks that an idle watch needs less than a kilobyte.
func TestIdleWatchesHaveNoBuffer(t *testing.T) {
	const watches = 100
	quiet := make([]*codec.Events, watches)
	text := event("ADDED", large[:len(large)-len(large)/10*9]+
		`"}`) // larger than the buffer of an active watch
	open := func() *codec.Events {
		events := codec.NewEvents(io.NopCloser(&interruptedReader{text: text}), clientGoSerializer(), nil)
		if e, _, err := events.Next(); err != nil || e.Type != watch.Added {
			t.Fatalf("Next() = %v, %v, want an ADDED event", e, err)
		}
		if _, _, err := events.Next(); err != errPause {
			t.Fatalf("Next() = %v, want the reader's error", err)
		}
		return events
	}
	open() // what the first one allocates for all is not measured
	before := heapBytes()
	for n := range quiet {
		quiet[n] = open()
	}
	if each := (heapBytes() - before) / watches; each > 1024 {
		t.Errorf("each idle watch retains %d bytes, want at most 1024", each)
	}
	runtime.KeepAlive(quiet)
	runtime.KeepAlive(text)
}

// interruptedReader returns text, and then an error.
type interruptedReader struct{ text string }

var errPause = errors.New("no data")

func (p *interruptedReader) Read(data []byte) (int, error) {
	if p.text == "" {
		return 0, errPause
	}
	n := copy(data, p.text)
	p.text = p.text[n:]
	return n, nil
}

// TestIdleWatchOfStockDecoder checks that a watch read by client-go's decoder does not retain the line
// buffer.
func TestIdleWatchOfStockDecoder(t *testing.T) {
	const watches = 50
	quiet := make([]*codec.Events, watches)
	before := heapBytes()
	for n := range quiet {
		text := "{\n\"type\":\"ADDED\",\"object\":" + widget(1) + "}\n"
		quiet[n] = codec.NewEvents(io.NopCloser(&interruptedReader{text: text}), clientGoSerializer(), nil)
		if _, _, err := quiet[n].Next(); err != nil {
			t.Fatal(err)
		}
		_, _, _ = quiet[n].Next()
	}
	if each := (heapBytes() - before) / watches; each > 40<<10 {
		t.Errorf("each idle watch retains %d bytes, want at most 40 KB", each)
	}
	runtime.KeepAlive(quiet)
}
