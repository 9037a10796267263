package packed

import (
	"bytes"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Same reports whether two objects have the same text in the same form. It returns false for different forms,
// because comparing them would require decompression.
func (o *Object) Same(other *Object) bool {
	if o == other {
		return true
	}
	return o.info == other.info && o.info.original == nil && o.slab == other.slab
}

// SameContent reports whether two objects have the same JSON in any form. It decompresses objects with equal
// identity fields.
func (o *Object) SameContent(other *Object) bool {
	if o.Same(other) {
		return true
	}
	if o.info.original != nil || other.info.original != nil || o.Version() != other.Version() ||
		o.UID() != other.UID() || o.Key() != other.Key() ||
		o.info.apiVersion != other.info.apiVersion || o.info.kind != other.info.kind {
		return false
	}
	same := false
	err := o.PeekJSON(func(json []byte) error {
		return other.PeekJSON(func(others []byte) error {
			same = bytes.Equal(json, others)
			return nil
		})
	})
	return err == nil && same
}

// Pruned returns u without the removed fields; u itself remains unchanged.
func (p *Pruner) Pruned(u *unstructured.Unstructured) *unstructured.Unstructured {
	if p == nil {
		return u
	}
	u = copyOf(u)
	p.Apply(u)
	return u
}
