package packed_test

import (
	"reflect"
	"runtime"
	"testing"

	"github.com/crdcache/crdcache/internal/packed"
)

// TestKeepDecoded verifies that an object stores one typed copy next to the unstructured one, until the
// garbage collector frees them.
func TestKeepDecoded(t *testing.T) {
	type first struct{ Name *string }
	type second struct{ Number int }
	o, err := packed.NewPacker(nil).
		Pack([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if o.DecodedAs(reflect.TypeFor[first]()) != nil {
		t.Error("DecodedAs() returned a struct before one was stored")
	}
	u := o.Unstructured()
	one, other := &first{Name: new("a")}, &first{}
	if o.KeepDecoded(one) != any(one) || o.KeepDecoded(other) != any(one) ||
		o.DecodedAs(reflect.TypeFor[first]()) != any(one) {
		t.Error("KeepDecoded or DecodedAs did not return the first struct")
	}
	if o.DecodedAs(reflect.TypeFor[second]()) != nil {
		t.Error("DecodedAs() returned a struct of another type")
	}
	if two := (&second{1}); o.KeepDecoded(two) != any(two) || o.DecodedAs(reflect.TypeFor[first]()) != nil {
		t.Error("the structs of two types are stored")
	} else {
		runtime.KeepAlive(two)
	}
	if o.Unstructured() != u {
		t.Error("storing a struct dropped the unstructured copy")
	}
	runtime.KeepAlive(one)
	runtime.KeepAlive(u)
	o.KeepDecoded(&first{Name: new("b")})
	runtime.GC()
	runtime.GC()
	if o.DecodedAs(reflect.TypeFor[first]()) != nil || o.Decoded() != nil {
		t.Error("an unreferenced copy was not garbage-collected")
	}
	defer func() {
		if recover() == nil {
			t.Error("DecodedAs() did not panic for a pointer to another type")
		}
	}()
	o.KeepDecoded(new(int))
}
