package codec

import (
	"context"
	"errors"
	"io"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/crdcache/crdcache/internal/packed"
)

// Events reads the events of a watch on the goroutine of its caller, and keeps no buffer while it waits for one: what a
// watch costs on which nothing happens is what the connection keeps of it. Objects are as with WrapPacked. It is not safe
// for concurrent use, but for Close.
type Events struct {
	stream *stream
	lines  *lineReader
	// unusual reads all events from the first one on that has not the form of API servers; nil so far.
	unusual *restwatch.Decoder
}

var errNoJSON = errors.New("the serializer has no streams of JSON")

// NewEvents returns the events of body, the JSON that a watch was answered with. stock is the serializer of
// dynamic.ConfigFor.
func NewEvents(body io.ReadCloser, stock runtime.NegotiatedSerializer, packer *packed.Packer) (*Events, error) {
	info, ok := runtime.SerializerInfoForMediaType(stock.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok || info.StreamSerializer == nil {
		return nil, errors.Join(errNoJSON, body.Close())
	}
	s := newStream(info, packer, nil)
	s.lines = &lineReader{source: body, stock: s.framer}
	return &Events{stream: s, lines: s.lines}, nil
}

// Next returns the next event, one of no type for an object that the packer was not asked to pack. waited says that it was not there yet when the one before was asked for. The error is io.EOF
// at the end of the stream, and otherwise that of reading or decoding.
func (e *Events) Next() (event watch.Event, waited bool, err error) {
	reads := e.lines.reads
	if e.unusual == nil {
		frame, err := e.lines.next()
		if err != nil {
			return event, true, err
		}
		if e.lines.inLines() {
			if kind, object, _ := e.stream.pack(frame); object == packed.Unwanted {
				return watch.Event{}, e.lines.reads > reads, nil
			} else if object != nil {
				return watch.Event{Type: kind, Object: object}, e.lines.reads > reads, nil
			}
			e.lines.rest = frame
		}
		events, objects := e.stream.decoders()
		e.unusual = restwatch.NewDecoder(streaming.NewDecoder(e.lines, events), objects)
	}
	event.Type, event.Object, err = e.unusual.Decode()
	return event, true, err
}

// CloseWith has the watch end with the context of its request, and returns what calls that off. The bodies of HTTP/2 do so by
// themselves, but those of other transports may only when they are closed, for which a context needs room for each watch.
func (e *Events) CloseWith(ctx context.Context) (stop func() bool) {
	if reflect.TypeOf(e.lines.source).PkgPath() == http2Package {
		return func() bool { return true }
	}
	return context.AfterFunc(ctx, func() { _ = e.Close() })
}

// http2Package has the type of the bodies of HTTP/2.
const http2Package = "golang.org/x/net/http2"

// Close ends the watch. A call of Next that waits returns.
func (e *Events) Close() error { return e.lines.Close() }
