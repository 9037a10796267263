// Package stream passes on the events of a watch, and reports on the way what they say: that initial events are over,
// or stop before their end.
//
//	w = stream.New(w, stream.Hooks{Initial: true})
package stream
