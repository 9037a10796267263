// Package jsontext reads JSON: the pieces that it is made of, for those who read documents in ways of their
// own (packing an object, finding what paths want, printing), and with a Decoder whole objects, into the maps
// that unstructured objects hold.
//
// # Usage
//
// Functions take the data and the offset of what they read, and return the offset after it. Where the data is
// not what it should be they return the complement of the offset at which that shows: a negative number,
// whose complement (^) is the length of the data, or more, where it ends too early.
//
//	if end = jsontext.Text(data, start); end < 0 {
//		return errorAt(^end)
//	}
//
// First, Next and Key walk through objects and arrays in this way, and Members iterates over an object.
// AppendIndented writes JSON as encoding/json writes the decoded value, without decoding it.
//
// What is accepted is what sigs.k8s.io/json accepts, number for number and escape for escape. Strings may
// hold invalid UTF-8, which AppendText replaces.
//
// # Decoding
//
// The result is, value by value and type by type, that of sigs.k8s.io/json's case-sensitive decoding that
// preserves integers, which apimachinery uses for unstructured objects: a number is an int64 when it has no
// decimal point and fits, and a float64 otherwise; of a repeated key the last value wins; text that is not
// valid UTF-8, and halves of surrogate pairs, become U+FFFD; nesting ends at 10,000. What that decoder
// refuses is refused here, although in other words. Fuzz tests hold the two against each other.
//
// # Memory
//
// Nothing in a result points into the bytes it was read from, so their buffer may be reused. Each string has
// memory of its own. One copy of the text for all strings of an object saves allocations, but it keeps the
// keys, the punctuation and every dropped field alive with the object, and whoever keeps only a name keeps
// everything. Measured on a Certificate of 2 KB: 8.8 KB of heap with a copy for each string, 10.7 KB with one
// for all; without managed fields 3.5 KB and 5.5 KB. sigs.k8s.io/json needs 10.9 KB.
//
// Keys and short strings that occur again and again are shared through a table of bounded size, with the
// interface value that holds them. Objects and arrays whose whole text occurs again, as managed fields,
// limits and probes do in most objects of a type, are copied from a table of bounded size, too, instead of
// being read: each result has maps and slices of its own, and may be changed; only the two results of
// DecodePair share theirs. Slices are made with the size they end up with; maps with the size of the last one
// that began alike, and made again when that was far too much.
//
// # Concurrency
//
// Functions have no state. A Decoder is safe for concurrent use, and what it returns is the caller's.
package jsontext
