// Package codec packs the objects of lists and watches from the bytes of a server's responses.
//
// # Usage
//
//	list, err := codec.ReadList(body, packer)
//
//	events := codec.NewEvents(body, dynamic.ConfigFor(config).NegotiatedSerializer, packer)
//	event, waited, err := events.Next()
//
// # Performance
//
// The serializer of the dynamic client reads an object several times: to find its kind, to check the
// syntax before each pass, and to build the object. It reads a watch event once more, to find its end.
// In this package an event is a line, and one pass over it checks the syntax and packs the object.
// ReadList needs a buffer of the size of the largest item.
//
// # Fallback
//
// Only typical JSON is packed: objects with a kind and a version, lists of objects, and events in lines. The
// serializer of the dynamic client decodes everything else from the first byte: syntax errors, kinds with Go
// types (such as Status), and unusual frames. Therefore the errors equal those of client-go's client.
// ReadList does not fall back: it returns ErrUnsupportedList.
package codec
