package packed_test

import (
	"reflect"
	"runtime"
	"testing"

	"github.com/crdcache/crdcache/internal/packed"
)

// TestKeepDecoded keeps one struct at a time beside the unstructured form, until the garbage collector takes
// it.
func TestKeepDecoded(t *testing.T) {
	type first struct{ Name *string }
	type second struct{ Number int }
	o, err := packed.NewPacker(nil).
		Pack([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if o.DecodedAs(reflect.TypeFor[first]()) != nil {
		t.Error("there is a struct that nobody has kept")
	}
	u := o.Unstructured()
	one, other := &first{Name: new("a")}, &first{}
	if o.KeepDecoded(one) != any(one) || o.KeepDecoded(other) != any(one) ||
		o.DecodedAs(reflect.TypeFor[first]()) != any(one) {
		t.Error("the first struct is not the one that everybody gets")
	}
	if o.DecodedAs(reflect.TypeFor[second]()) != nil {
		t.Error("a struct of another type is returned")
	}
	if two := (&second{1}); o.KeepDecoded(two) != any(two) || o.DecodedAs(reflect.TypeFor[first]()) != nil {
		t.Error("two structs are kept")
	} else {
		runtime.KeepAlive(two)
	}
	if o.Unstructured() != u {
		t.Error("the unstructured form is forgotten")
	}
	runtime.KeepAlive(one)
	runtime.KeepAlive(u)
	o.KeepDecoded(&first{Name: new("b")})
	runtime.GC()
	runtime.GC()
	if o.DecodedAs(reflect.TypeFor[first]()) != nil || o.Decoded() != nil {
		t.Error("what nobody holds outlives the garbage collector")
	}
	defer func() {
		if recover() == nil {
			t.Error("a pointer to no struct is kept")
		}
	}()
	o.KeepDecoded(new(int))
}
