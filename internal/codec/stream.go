package codec

import (
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/crdcache/crdcache/internal/packed"
)

// stream is one watch. client-go reads a frame, decodes the event in it, and decodes the object in that, one after
// the other. Here the object is packed with the event, in one pass over the frame; that pass is also what tells
// whether the frame, which is just a line, was cut rightly.
type stream struct {
	packer *packed.Packer
	// all packs what is in no collection, such as bookmarks.
	all     *packed.Packer
	typed   map[string]bool
	objects runtime.Serializer
	events  runtime.Serializer
	framer  runtime.Framer

	lines *lineReader
	// object is the one of the last event, which was packed from raw; or nil.
	object *packed.Object
	raw    []byte
	feed   *Feed // nil: client-go hands over the events
	// eventGVK and objectGVK are the kinds that Decode returns, which client-go does not look at; so they need not be
	// new ones each time.
	eventGVK, objectGVK schema.GroupVersionKind
}

// newStream returns a stream whose objects are packed, with the serializer and framer of info for what is unusual.
func newStream(info runtime.SerializerInfo, packer *packed.Packer, feed *Feed) *stream {
	return &stream{
		packer: packer, all: packer.All(), feed: feed, typed: typedKinds(),
		objects: info.Serializer, events: info.StreamSerializer.Serializer, framer: info.StreamSerializer.Framer,
	}
}

// decoders returns what decodes the events of the stream, and what decodes the objects in them.
func (s *stream) decoders() (events, objects runtime.Serializer) {
	return &streamEvents{Serializer: s.events, stream: s},
		&streamObjects{packingSerializer: packingSerializer{Serializer: s.objects, packer: s.packer}, stream: s}
}

// streamFramer is the framer of a stream.
type streamFramer struct {
	runtime.Framer
	*stream
}

// NewFrameReader implements runtime.Framer.
func (f *streamFramer) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	f.lines = &lineReader{source: r, stock: f.framer}
	if f.feed != nil {
		return &feedReader{lineReader: f.lines, stream: f.stream, feed: f.feed}
	}
	return f.lines
}

// streamEvents decodes the events of a stream.
type streamEvents struct {
	runtime.Serializer
	*stream
}

// Decode implements runtime.Decoder. The object of an event is part of data, so it must be decoded before data
// is reused, which is what client-go does.
func (e *streamEvents) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	e.object, e.raw = nil, nil
	event, ok := into.(*metav1.WatchEvent)
	if !ok || defaults != nil {
		return e.events.Decode(data, defaults, into)
	}
	if e.lines == nil || !e.lines.inLines() {
		return e.events.Decode(data, nil, into)
	}
	if e.event(data, event) { // an object that is not wanted is decoded as ever, and dropped afterwards
		e.eventGVK = schema.GroupVersionKind{Version: "v1", Kind: watchEventKind}
		return event, &e.eventGVK, nil
	}
	object, gvk, err := e.events.Decode(data, nil, into)
	if err == nil {
		return object, gvk, nil
	}
	// The line is not one event. The stock reader takes the stream from its beginning.
	*event = metav1.WatchEvent{}
	return streaming.NewDecoder(e.lines.handOver(), e.events).Decode(nil, event)
}

// event reads a line in the form that API servers send, and packs the object in it. It returns false for any other.
func (e *streamEvents) event(data []byte, event *metav1.WatchEvent) bool {
	kind, object, raw := e.pack(data)
	if object == nil || object == packed.Unwanted {
		return false
	}
	event.Type, event.Object.Raw = string(kind), raw
	e.object, e.raw = object, raw
	return true
}

// pack packs the object of an event in the form that API servers send, and returns that part of data as well; nil for
// any other, and packed.Unwanted for what the packer was not asked to pack.
func (s *stream) pack(data []byte) (kind watch.EventType, object *packed.Object, raw []byte) {
	kind, start := eventHead(data)
	if start == 0 || len(data) > maxFrame {
		return "", nil, nil
	}
	packer := s.all
	if kind == watch.Added || kind == watch.Modified || kind == watch.Deleted {
		packer = s.packer
	}
	object, end, _ := packer.TryNext(data, start)
	if object == nil || !onlyBrace(data[end:]) {
		return "", nil, nil
	}
	if object == packed.Unwanted {
		return kind, object, nil
	}
	if gvk := object.GroupVersionKind(); gvk != s.objectGVK { // nearly always it is that of the object before
		if s.typed[gvk.Kind] || isTable(gvk) {
			return "", nil, nil
		}
		s.objectGVK = gvk
	}
	return kind, object, data[start:end:end]
}

// onlyBrace reports whether text is the brace that ends an event.
func onlyBrace(text []byte) bool {
	if len(text) == 0 || text[0] != '}' {
		return false
	}
	for _, c := range text[1:] {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return true
}

// streamObjects decodes the objects of a stream.
type streamObjects struct {
	packingSerializer
	*stream
}

// Decode implements runtime.Decoder.
func (o *streamObjects) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, raw := o.object, o.raw
	o.object, o.raw = nil, nil
	if object != nil && defaults == nil && into == nil && len(data) == len(raw) && &data[0] == &raw[0] {
		return object, &o.objectGVK, nil
	}
	return o.packingSerializer.Decode(data, defaults, into)
}
