// Package jsontext reads the pieces that JSON is made of, for those who read documents in ways of their own: packing an
// object, decoding one, finding what paths want, printing.
//
// # Usage
//
// Functions take the data and the offset of what they read, and return the offset after it. Where the data is not what
// it should be they return the complement of the offset at which that shows: a negative number, whose complement (^) is
// the length of the data, or more, where it ends too early.
//
//	if end = jsontext.Text(data, start); end < 0 {
//		return errorAt(^end)
//	}
//
// What is accepted is what sigs.k8s.io/json accepts, number for number and escape for escape. Strings may hold invalid
// UTF-8, which AppendText replaces.
//
// # Concurrency
//
// Nothing has any state.
package jsontext
