package codec

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// eventSerializer decodes the events of a watch, as the serializer that it holds does, but without reading the
// object: that is read when it is decoded itself.
type eventSerializer struct {
	runtime.Serializer
}

// Decode implements runtime.Decoder. The object of an event is part of data, so it must be decoded before
// data is reused, which is what client-go does.
func (s *eventSerializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if ok && defaults == nil && event.Type == "" && event.Object.Raw == nil {
		if kind, object := splitEvent(data); object != nil {
			event.Type = string(kind)
			event.Object.Raw = object
			return event, &schema.GroupVersionKind{Version: "v1", Kind: watchEventKind}, nil
		}
	}
	return s.Serializer.Decode(data, defaults, into)
}

// watchEventKind is the kind of metav1.WatchEvent.
const watchEventKind = "WatchEvent"

var (
	typePrefix   = []byte(`{"type":"`)
	objectPrefix = []byte(`","object":`)
	eventTypes   = []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error}
)

// splitEvent returns the type and the object of an event in the form that API servers send, or nil for any
// other. It finds the object by its brackets; whether it is valid is for its decoder to see.
func splitEvent(data []byte) (watch.EventType, []byte) {
	kind, start := eventHead(data)
	if start == 0 {
		return "", nil
	}
	object := data[start:]
	var scan bracketScanner
	end, state := scan.advance(object)
	if state != scanComplete || string(bytes.TrimRight(object[end:], " \t\r\n")) != "}" {
		return "", nil
	}
	return kind, object[:end:end]
}

// eventHead returns the type of an event and where its object, which has a brace there, begins; or 0 for data
// that does not begin as API servers have it.
func eventHead(data []byte) (watch.EventType, int) {
	rest, ok := bytes.CutPrefix(data, typePrefix)
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
		return kind, len(data) - len(object)
	}
	return "", 0
}
