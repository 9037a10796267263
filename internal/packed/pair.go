package packed

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Pair returns what Unstructured does for an object before and after an update, for less: where both have to be
// decoded, maps, lists and strings whose text is the same in both are decoded once, and the two copies share them. A
// copy that is in memory already is returned as it is, and never shares with one that is made later: were it changed
// against the contract, the damage would outlive it.
func Pair(before, after *Object) (previous, current *unstructured.Unstructured) {
	if !before.pairs(after) {
		return before.Unstructured(), after.Unstructured()
	}
	previous, current = &unstructured.Unstructured{}, &unstructured.Unstructured{}
	err := before.View(func(old []byte) error {
		return after.View(func(new []byte) (err error) {
			current.Object, previous.Object, err = after.class.decoder.DecodePair(new, old)
			return err
		})
	})
	if err != nil { // each reports its own
		return before.Unstructured(), after.Unstructured()
	}
	return before.publish(previous), after.publish(current)
}

// pairs reports whether two objects have to be decoded, and can be together.
func (o *Object) pairs(other *Object) bool {
	return o != other && o.class.kept == nil && other.class.kept == nil && o.class.decoder == other.class.decoder &&
		o.Decoded() == nil && other.Decoded() == nil
}
