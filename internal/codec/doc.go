// Package codec gives a dynamic client a faster way to decode JSON, with the same results.
//
// # Usage
//
//	config := dynamic.ConfigFor(config)
//	config.NegotiatedSerializer = codec.Wrap(config.NegotiatedSerializer)
//
// For informers there is WrapPacked, whose watches yield packed objects, and ReadList, which packs a list as it
// arrives:
//
//	config.NegotiatedSerializer = codec.WrapPacked(config.NegotiatedSerializer, packer, nil)
//
// # What is faster
//
// The dynamic client's own serializer reads an object several times over, and an event of a watch still more
// often: to cut it out of the stream, to find its kind, to check the syntax before each pass, and to build it;
// the items of a list it even builds twice. Here an event is cut out by counting brackets, and objects are built
// in the only pass over them, by package decode.
//
// With WrapPacked they are not built at all: an event is a line, one pass over it tells whether it really is one
// event, and packs the object in it. From an API server's bytes to the reflector that takes a tenth of the time that
// decoding does, and no memory but what is kept. ReadList needs a buffer the size of the largest item.
//
// # What stays the same
//
// Only JSON of the usual form is handled here: objects with a kind and a version, lists whose items are
// objects, compact watch events one after the other. All else is left to the serializer that is wrapped, from
// the first byte on: what is not JSON, what does not parse, what the client has Go types for (Status above
// all), odd frames. So errors are that serializer's too.
package codec
