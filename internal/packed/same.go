package packed

import (
	"bytes"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Same reports whether two objects hold the same text in the same form, and so show the same. Objects that
// show the same in other forms are not the same: finding that out would cost decoding both.
func (o *Object) Same(other *Object) bool {
	if o == other {
		return true
	}
	return o.class == other.class && o.class.kept == nil && o.slab == other.slab
}

// SameContent is Same for objects in any forms: it decompresses what may be the same.
func (o *Object) SameContent(other *Object) bool {
	if o.Same(other) {
		return true
	}
	if o.class.kept != nil || other.class.kept != nil || o.Version() != other.Version() ||
		o.UID() != other.UID() || o.Key() != other.Key() ||
		o.class.apiVersion != other.class.apiVersion || o.class.kind != other.class.kind {
		return false
	}
	same := false
	err := o.Peek(func(json []byte) error {
		return other.Peek(func(others []byte) error {
			same = bytes.Equal(json, others)
			return nil
		})
	})
	return err == nil && same
}

// Pruned returns a decoded object without what the Pruner leaves out, in a copy where there is something.
func (p *Pruner) Pruned(u *unstructured.Unstructured) *unstructured.Unstructured {
	if p == nil {
		return u
	}
	u = copyOf(u)
	p.Apply(u)
	return u
}
