package codec

import (
	"bytes"
	"errors"
	"io"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/crdcache/crdcache/internal/packed"
)

// Events reads the events of a watch on the goroutine of its caller. It keeps no buffer while it waits for an
// event, so that a quiet watch costs no more than its connection. Only Close may be called concurrently.
type Events struct {
	lines  lineReader
	stock  runtime.NegotiatedSerializer
	packer *packed.Packer
	// gvk is the kind of the last object that was packed.
	gvk schema.GroupVersionKind
	// rest reads the stream from the first frame on that is not a line; nil so far.
	rest *restwatch.Decoder
}

// NewEvents returns the events of body, which is the JSON that answers a watch. stock is the serializer of
// dynamic.ConfigFor.
func NewEvents(body io.ReadCloser, stock runtime.NegotiatedSerializer, packer *packed.Packer) *Events {
	return &Events{lines: lineReader{source: body}, stock: stock, packer: packer}
}

// Next returns the next event. Its object is a *packed.Object, unless the dynamic client has a Go type for
// it. The event has no type if the packer does not want its object. waited is true if the event had not
// arrived when Next was called. The error is io.EOF at the end of the stream, otherwise that of reading or
// decoding.
func (e *Events) Next() (event watch.Event, waited bool, err error) {
	if e.rest != nil {
		event, err = e.decode(e.rest)
		return event, true, err
	}
	reads := e.lines.reads
	frame, err := e.lines.next()
	switch {
	case err == errNoLine:
	case err != nil:
		return event, true, err
	default:
		if event, ok := e.pack(frame); ok {
			return event, e.lines.reads > reads, nil
		}
	}
	event, err = e.unusual(frame)
	return event, true, err
}

// Close ends the watch. A blocked Next returns.
func (e *Events) Close() error { return e.lines.source.Close() }

var (
	typePrefix   = []byte(`{"type":"`)
	objectPrefix = []byte(`","object":`)
	eventTypes   = []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error}
)

// pack packs the object of an event that has the form in which API servers send it, and is false for any
// other frame. The scan that packs also proves that the frame, which is just a line, is one event.
func (e *Events) pack(frame []byte) (event watch.Event, ok bool) {
	kind, start := eventHead(frame)
	if start == 0 || len(frame) > maxFrame {
		return event, false
	}
	packer := e.packer
	if kind == watch.Bookmark || kind == watch.Error {
		packer = packer.All() // it belongs to no collection
	}
	object, end, _ := packer.TryNext(frame, start)
	if object == nil || !onlyBrace(frame[end:]) {
		return event, false
	}
	if object == packed.Unwanted {
		return event, true
	}
	if gvk := object.GroupVersionKind(); gvk != e.gvk { // nearly always the kind of the object before
		if typedKinds()[gvk.Kind] || isTable(gvk) {
			return event, false
		}
		e.gvk = gvk
	}
	return watch.Event{Type: kind, Object: object}, true
}

// eventHead returns the type of an event and the offset of its object, which begins with a brace. The offset
// is 0 if the frame does not begin as API servers write it.
func eventHead(frame []byte) (watch.EventType, int) {
	rest, ok := bytes.CutPrefix(frame, typePrefix)
	if !ok {
		return "", 0
	}
	for _, kind := range eventTypes {
		if !bytes.HasPrefix(rest, []byte(kind)) {
			continue
		}
		object, ok := bytes.CutPrefix(rest[len(kind):], objectPrefix)
		if !ok || len(object) == 0 || object[0] != '{' {
			return "", 0
		}
		return kind, len(frame) - len(object)
	}
	return "", 0
}

// onlyBrace reports whether text is the brace that ends an event.
func onlyBrace(text []byte) bool {
	return len(text) > 0 && text[0] == '}' && len(bytes.TrimLeft(text[1:], " \t\r\n")) == 0
}

var errNoJSON = errors.New("the serializer has no streams of JSON")

// unusual decodes a frame that cannot be packed as client-go does. If the frame is not one event, or is nil,
// the stock decoder reads the stream from the beginning of the frame on, and also finds the error if there is
// one.
func (e *Events) unusual(frame []byte) (watch.Event, error) {
	info, ok := runtime.SerializerInfoForMediaType(e.stock.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok || info.StreamSerializer == nil {
		return watch.Event{}, errNoJSON
	}
	if frame != nil && len(frame) <= maxFrame {
		one := oneFrame{info.StreamSerializer.Serializer, frame}
		if event, err := e.decode(restwatch.NewDecoder(one, info.Serializer)); err == nil {
			return event, nil
		}
	}
	frames := info.StreamSerializer.Framer.NewFrameReader(e.lines.unread(frame))
	events := streaming.NewDecoder(frames, info.StreamSerializer.Serializer)
	e.rest = restwatch.NewDecoder(events, info.Serializer)
	return e.decode(e.rest)
}

// oneFrame is a stream of one frame.
type oneFrame struct {
	serializer runtime.Decoder
	frame      []byte
}

// Decode implements streaming.Decoder.
func (f oneFrame) Decode(
	defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	return f.serializer.Decode(f.frame, defaults, into)
}

// Close implements streaming.Decoder.
func (oneFrame) Close() error { return nil }

// decode decodes the next event of a stream, and packs its object.
func (e *Events) decode(stream *restwatch.Decoder) (event watch.Event, err error) {
	if event.Type, event.Object, err = stream.Decode(); err != nil {
		return watch.Event{}, err
	}
	u, ok := event.Object.(*unstructured.Unstructured)
	if !ok || isTable(u.GroupVersionKind()) {
		return event, nil
	}
	object, err := e.packer.FromUnstructured(u)
	if err != nil {
		return watch.Event{}, err
	}
	event.Object = object
	return event, nil
}

// isTable reports whether objects of a kind are tables, which informers refuse by their kind.
func isTable(gvk schema.GroupVersionKind) bool {
	return gvk.Kind == "Table" && gvk.Group == metav1.GroupName
}

// typedKinds returns the kinds that a dynamic client decodes into Go types. The client also compares group
// and version, but it takes some kinds of any group for its own. A kind too many only costs time.
var typedKinds = sync.OnceValue(func() map[string]bool {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	kinds := map[string]bool{}
	for gvk := range scheme.AllKnownTypes() {
		kinds[gvk.Kind] = true
	}
	return kinds
})
