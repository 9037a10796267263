// Package codec packs the objects of lists and watches from the bytes of a server's answers.
//
// # Usage
//
//	list, err := codec.ReadList(body, packer)
//
//	events := codec.NewEvents(body, dynamic.ConfigFor(config).NegotiatedSerializer, packer)
//	event, waited, err := events.Next()
//
// # What is faster
//
// The serializer of the dynamic client reads an object several times, and an event of a watch still more
// often: to find its end, to find its kind, to check the syntax before each pass, and to build the object.
// Here an event is a line, and one pass over it checks the syntax and packs the object. ReadList needs a
// buffer of the size of the largest item.
//
// # What stays the same
//
// Only JSON of the usual form is packed: objects with a kind and a version, lists of objects, events in
// lines. The serializer of the dynamic client decodes everything else from its first byte on: what does not
// parse, what the client has Go types for (Status above all), odd frames. So errors are those of the client,
// too. ReadList returns ErrUnusual instead.
package codec
