package packed

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Same reports whether two objects hold the same text in the same form, and so show the same. Objects that show
// the same in other forms are not the same: finding that out would cost decoding both.
func (o *Object) Same(other *Object) bool {
	if o == other {
		return true
	}
	return o.class == other.class && o.class.kept == nil && o.slab == other.slab
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
