package packed_test

import (
	"reflect"
	"runtime"
	"testing"

	"github.com/crdcache/crdcache/internal/packed"
)

// TestKeepDecoded stores typed copies next to the unstructured one, until the garbage collector frees them.
func TestKeepDecoded(t *testing.T) {
	type first struct{ Name *string }
	type second struct{ Number int }
	o, err := packed.NewPacker(nil).
		Pack([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if o.DecodedAs(reflect.TypeFor[first]()) != nil {
		t.Error("a struct although none was stored")
	}
	u := o.Unstructured()
	one, other := &first{Name: new("a")}, &first{}
	if o.KeepDecoded(one) != any(one) || o.KeepDecoded(other) != any(one) ||
		o.DecodedAs(reflect.TypeFor[first]()) != any(one) {
		t.Error("the first struct is not shared")
	}
	if o.DecodedAs(reflect.TypeFor[second]()) != nil {
		t.Error("a struct of another type is returned")
	}
	if two := (&second{1}); o.KeepDecoded(two) != any(two) || o.DecodedAs(reflect.TypeFor[first]()) != nil {
		t.Error("two structs are stored")
	} else {
		runtime.KeepAlive(two)
	}
	if o.Unstructured() != u {
		t.Error("the unstructured copy is lost")
	}
	runtime.KeepAlive(one)
	runtime.KeepAlive(u)
	o.KeepDecoded(&first{Name: new("b")})
	runtime.GC()
	runtime.GC()
	if o.DecodedAs(reflect.TypeFor[first]()) != nil || o.Decoded() != nil {
		t.Error("an unreferenced copy survives the garbage collector")
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic for a pointer to another type")
		}
	}()
	o.KeepDecoded(new(int))
}
