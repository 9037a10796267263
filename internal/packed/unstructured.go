package packed

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Unstructured returns the object decoded: shared and not to be changed. Concurrent callers, and later ones
// for as long as the garbage collector has not taken the copy, get the same one. Of a compressed object that
// turns out to be damaged it returns what is known without its body, after reporting that. It counts as a
// read.
func (o *Object) Unstructured() *unstructured.Unstructured {
	o.MarkRead()
	return o.Shown()
}

// Shown is Unstructured for what is shown to somebody who has not asked for it, as to handlers and index
// functions: it does not count as a read.
func (o *Object) Shown() *unstructured.Unstructured {
	if kept := o.class.kept; kept != nil {
		return kept
	}
	if u := o.Decoded(); u != nil {
		return u
	}
	u, err := o.Decode()
	if err != nil {
		utilruntime.HandleError(err)
		return o.skeleton()
	}
	return o.publish(u)
}

// Decode returns the object decoded, for the caller alone. It fails for compressed objects that are damaged.
func (o *Object) Decode() (*unstructured.Unstructured, error) {
	if kept := o.class.kept; kept != nil {
		return copyOf(kept), nil
	}
	u := newCopy()
	err := o.Peek(func(json []byte) (err error) {
		u.Object, err = o.class.decoder.Decode(json)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("decoding %s: %w", o.Key(), err)
	}
	return u, nil
}

// skeleton is the object without its body.
func (o *Object) skeleton() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(o.class.apiVersion)
	u.SetKind(o.class.kind)
	u.SetName(o.GetName())
	u.SetNamespace(o.GetNamespace())
	u.SetUID(o.GetUID())
	u.SetResourceVersion(o.GetResourceVersion())
	if !o.oddLabels() {
		u.SetLabels(o.GetLabels())
	}
	return u
}

// copyOf copies maps and lists; unlike DeepCopy it takes any values.
func copyOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	content, _ := copyValue(u.Object).(map[string]any)
	return &unstructured.Unstructured{Object: content}
}

func copyValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if value == nil {
			return value
		}
		copied := make(map[string]any, len(value))
		for k, v := range value {
			copied[k] = copyValue(v)
		}
		return copied
	case []any:
		if value == nil {
			return value
		}
		copied := make([]any, len(value))
		for i, v := range value {
			copied[i] = copyValue(v)
		}
		return copied
	}
	return value
}

// Pair returns what Shown does for an object before and after an update, for less: where both have to be
// decoded, maps, lists and strings whose text is the same in both are decoded once, and the two copies share
// them. A copy that is in memory already is returned as it is, and never shares with one that is made later:
// were it changed against the contract, the damage would outlive it.
func Pair(before, after *Object) (previous, current *unstructured.Unstructured) {
	if !before.pairs(after) {
		return before.Shown(), after.Shown()
	}
	previous, current = newCopy(), newCopy()
	err := before.Peek(func(old []byte) error {
		return after.Peek(func(new []byte) (err error) {
			current.Object, previous.Object, err = after.class.decoder.DecodePair(new, old)
			return err
		})
	})
	if err != nil { // each reports its own
		return before.Shown(), after.Shown()
	}
	return before.publish(previous), after.publish(current)
}

// pairs reports whether two objects have to be decoded, and can be together.
func (o *Object) pairs(other *Object) bool {
	return o != other && o.class.kept == nil && other.class.kept == nil &&
		o.class.decoder == other.class.decoder &&
		o.Decoded() == nil && other.Decoded() == nil
}
