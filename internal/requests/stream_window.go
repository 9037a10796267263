package requests

import "k8s.io/apimachinery/pkg/runtime"

// window knows the sizes of the events that wait for the reader.
type window struct {
	sizes [buffered]int // of the last events that were sent
	next  int           // in sizes
	held  int           // bytes that wait at most, as far as was counted
}

// fits reports whether an event of some size may wait with those that do already.
func (w *window) fits(size, waiting int) bool {
	if w.held+size <= heldBytes {
		return true
	}
	w.held = 0
	for k := range waiting {
		w.held += w.sizes[(w.next+buffered-1-k)%buffered]
	}
	return w.held == 0 || w.held+size <= heldBytes
}

// add takes in that an event was sent.
func (w *window) add(size int) {
	w.sizes[w.next] = size
	w.next = (w.next + 1) % buffered
	w.held += size
}

// unknownSize is what objects are taken for that do not tell: so large that few wait.
const unknownSize = heldBytes / 16

// sizeOf returns the size of an object.
func sizeOf(object runtime.Object) int {
	if sized, ok := object.(interface{ Len() int }); ok {
		return sized.Len()
	}
	return unknownSize
}
