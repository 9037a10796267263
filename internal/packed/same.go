package packed

import (
	"bytes"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// SameBytes reports whether two objects have the same text in the same form. It returns false for different
// forms, because comparing them would require decompression.
func (o *Object) SameBytes(other *Object) bool {
	if o == other {
		return true
	}
	return o.info == other.info && o.info.unpackableObject == nil && o.slab == other.slab
}

// SameContent reports whether two objects have the same JSON in any form. It may decompress them.
func (o *Object) SameContent(other *Object) bool {
	if o.SameBytes(other) {
		return true
	}
	if o.info.unpackableObject != nil || other.info.unpackableObject != nil ||
		o.Version() != other.Version() || o.UID() != other.UID() || o.Key() != other.Key() ||
		o.info.apiVersion != other.info.apiVersion || o.info.kind != other.info.kind {
		return false
	}
	equal := false
	err := o.PeekJSON(func(json []byte) error {
		return other.PeekJSON(func(otherJSON []byte) error {
			equal = bytes.Equal(json, otherJSON)
			return nil
		})
	})
	return err == nil && equal
}

// Pruned returns u without the removed fields; u itself remains unchanged.
func (p *Pruner) Pruned(u *unstructured.Unstructured) *unstructured.Unstructured {
	if p == nil {
		return u
	}
	u = Copy(u)
	p.Apply(u)
	return u
}

// reuseCached returns the cached object with the key and the JSON of the object at data[start:end], or nil.
func (s *scanner) reuseCached(start, end int, lookup func(key string) *Object) *Object {
	identity := &s.identity
	s.key = s.key[:0]
	if len(identity.namespace.raw) > 0 {
		s.key = append(append(s.key, identity.namespace.raw...), '/')
	}
	s.key = append(s.key, identity.name.raw...)
	o := lookup(textOf(s.key))
	if o == nil || o.info.unpackableObject != nil || o.Version() != string(identity.rv.raw) {
		return nil // a changed object has another resource version
	}
	equal := false
	err := o.PeekJSON(func(json []byte) error {
		equal = s.equals(json, start, end)
		return nil
	})
	if err != nil || !equal {
		return nil
	}
	return o
}

// equals reports whether text equals s.data[start:end] without the ranges in s.removedRanges.
func (s *scanner) equals(text []byte, start, end int) bool {
	textOffset, from := 0, start
	for _, cut := range s.removedRanges {
		if !containsAt(text, textOffset, s.data[from:cut.start]) {
			return false
		}
		textOffset, from = textOffset+cut.start-from, cut.end
	}
	return containsAt(text, textOffset, s.data[from:end]) && textOffset+end-from == len(text)
}

// containsAt reports whether text contains part at an offset.
func containsAt(text []byte, at int, part []byte) bool {
	return at+len(part) <= len(text) && string(text[at:at+len(part)]) == string(part)
}
