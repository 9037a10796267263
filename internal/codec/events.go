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

// Events reads the events of a watch on the goroutine of its caller. It holds no buffer while it waits for an
// event, so that an idle watch needs no memory beyond its connection. Only Close may be called concurrently.
type Events struct {
	lines           lineReader
	stockSerializer runtime.NegotiatedSerializer
	packer          *packed.Packer
	// gvk is the kind of the last packed object.
	gvk schema.GroupVersionKind
	// fallback reads the stream from the first frame that is not a line. It is nil until then.
	fallback *restwatch.Decoder
}

// NewEvents returns the events of body, the JSON response to a watch request. stockSerializer is the
// serializer of dynamic.ConfigFor.
func NewEvents(body io.ReadCloser, stockSerializer runtime.NegotiatedSerializer,
	packer *packed.Packer) *Events {
	return &Events{lines: lineReader{source: body}, stockSerializer: stockSerializer, packer: packer}
}

// Next returns the next event. Its object is a *packed.Object, unless the dynamic client has a Go type for
// it. If the packer drops the object, the event has no type. waited reports whether Next had to wait for the
// event. The error is io.EOF at the end of the stream, otherwise an error of reading or decoding.
func (e *Events) Next() (event watch.Event, waited bool, err error) {
	if e.fallback != nil {
		event, err = e.decode(e.fallback)
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
	event, err = e.decodeFrame(frame)
	return event, true, err
}

// Close ends the watch and unblocks Next.
func (e *Events) Close() error { return e.lines.source.Close() }

var (
	typePrefix   = []byte(`{"type":"`)
	objectPrefix = []byte(`","object":`)
	eventTypes   = []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error}
)

// pack packs the object of an event in the form in which API servers send it. It returns false for any
// other frame, and for a line that is not exactly one event.
func (e *Events) pack(frame []byte) (event watch.Event, ok bool) {
	eventType, start := eventHead(frame)
	if start == 0 || len(frame) > maxFrameSize {
		return event, false
	}
	packer := e.packer
	if eventType == watch.Bookmark || eventType == watch.Error {
		packer = packer.Unfiltered() // shard filters do not apply
	}
	object, end, _ := packer.TryNext(frame, start)
	if object == nil || string(bytes.TrimRight(frame[end:], " \t\r\n")) != "}" {
		return event, false
	}
	if object == packed.Filtered {
		return event, true
	}
	if gvk := object.GroupVersionKind(); gvk != e.gvk { // nearly always equal
		if typedKinds()[gvk.Kind] || isTable(gvk) {
			return event, false
		}
		e.gvk = gvk
	}
	return watch.Event{Type: eventType, Object: object}, true
}

// eventHead returns the type of an event and the offset of its object. The offset is 0 if the frame does not
// begin as API servers write it.
func eventHead(frame []byte) (watch.EventType, int) {
	rest, ok := bytes.CutPrefix(frame, typePrefix)
	if !ok {
		return "", 0
	}
	for _, eventType := range eventTypes {
		if !bytes.HasPrefix(rest, []byte(eventType)) {
			continue
		}
		object, ok := bytes.CutPrefix(rest[len(eventType):], objectPrefix)
		if !ok || len(object) == 0 || object[0] != '{' {
			return "", 0
		}
		return eventType, len(frame) - len(object)
	}
	return "", 0
}

var errNoJSON = errors.New("the serializer has no streams of JSON")

// decodeFrame decodes a frame that cannot be packed, as client-go does. If the frame is nil or not
// exactly one event, the stock decoder reads the stream from the start of the frame.
func (e *Events) decodeFrame(frame []byte) (watch.Event, error) {
	info, ok := runtime.SerializerInfoForMediaType(e.stockSerializer.SupportedMediaTypes(),
		runtime.ContentTypeJSON)
	if !ok || info.StreamSerializer == nil {
		return watch.Event{}, errNoJSON
	}
	if frame != nil && len(frame) <= maxFrameSize {
		one := oneFrame{info.StreamSerializer.Serializer, frame}
		if event, err := e.decode(restwatch.NewDecoder(one, info.Serializer)); err == nil {
			return event, nil
		}
	}
	frames := info.StreamSerializer.Framer.NewFrameReader(e.lines.remainingStream(frame))
	events := streaming.NewDecoder(frames, info.StreamSerializer.Serializer)
	e.fallback = restwatch.NewDecoder(events, info.Serializer)
	return e.decode(e.fallback)
}

type oneFrame struct {
	serializer runtime.Decoder
	frame      []byte
}

func (f oneFrame) Decode(
	defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	return f.serializer.Decode(f.frame, defaults, into)
}

func (oneFrame) Close() error { return nil }

// decode decodes the next event of a stream and packs its object.
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

// isTable reports whether gvk is a server-side table, which informers reject by its kind.
func isTable(gvk schema.GroupVersionKind) bool {
	return gvk.Kind == "Table" && gvk.Group == metav1.GroupName
}

// typedKinds returns the kinds that a dynamic client decodes into Go types. The client also compares
// group and version, except for some kinds. A superfluous kind costs only the slow path.
var typedKinds = sync.OnceValue(func() map[string]bool {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	kinds := map[string]bool{}
	for gvk := range scheme.AllKnownTypes() {
		kinds[gvk.Kind] = true
	}
	return kinds
})
