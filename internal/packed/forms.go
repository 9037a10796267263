package packed

import (
	"reflect"
	"unsafe"
	"weak"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// forms are decoded copies of an object, which live until the garbage collector takes them. A value never
// changes.
type forms struct {
	unstructured weak.Pointer[unstructured.Unstructured]
	structured   *structured // nil: there was none
}

// roomy is a decoded copy with so much room around it that few fit into a span of the runtime, which walks a
// list of all weak pointers into a span to find one. By itself a copy takes 8 bytes, of which a span has a
// thousand.
type roomy struct {
	unstructured.Unstructured
	_ [120]byte
}

// newCopy returns an object to decode into, whose weak pointer is found fast.
func newCopy() *unstructured.Unstructured { return &new(roomy).Unstructured }

// structured is a copy in a struct. The weak pointer is to its first byte, because its type is only known at
// run time.
type structured struct {
	typ reflect.Type
	at  weak.Pointer[byte]
}

// value returns a pointer to the struct, or nil where the garbage collector has taken it or it is of another
// type.
func (s *structured) value(typ reflect.Type) any {
	if s == nil || s.typ != typ {
		return nil
	}
	at := s.at.Value()
	if at == nil {
		return nil
	}
	return reflect.NewAt(typ, unsafe.Pointer(at)).Interface()
}

// publish makes u the decoded copy that everybody gets, unless somebody else was faster, and returns that
// copy.
func (o *Object) publish(u *unstructured.Unstructured) *unstructured.Unstructured {
	next := &forms{unstructured: weak.Make(u)}
	for {
		before := o.decoded.Load()
		if before != nil {
			if other := before.unstructured.Value(); other != nil {
				return other
			}
			next.structured = before.structured
		}
		if o.decoded.CompareAndSwap(before, next) {
			return u
		}
	}
}

// Decoded returns what Unstructured returned last if that is still in memory, or nil.
func (o *Object) Decoded() *unstructured.Unstructured {
	if kept := o.class.kept; kept != nil {
		return kept
	}
	if last := o.decoded.Load(); last != nil {
		return last.unstructured.Value()
	}
	return nil
}

// DecodedAs returns what KeepDecoded was given last, a pointer to a struct of this type, if that is still in
// memory, or nil. It counts as a read where there is one.
func (o *Object) DecodedAs(typ reflect.Type) any {
	if last := o.decoded.Load(); last != nil {
		if value := last.structured.value(typ); value != nil {
			o.MarkRead()
			return value
		}
	}
	return nil
}

// KeepDecoded makes value, a pointer to a struct that the object was decoded into, what DecodedAs returns for
// its type, unless somebody else was faster, and returns what DecodedAs does from now on: shared and not to
// be changed. A copy of another type is forgotten. It panics for what is no pointer to a struct.
func (o *Object) KeepDecoded(value any) any {
	v := reflect.ValueOf(value)
	typ := v.Type().Elem()
	if typ.Kind() != reflect.Struct {
		panic("packed: KeepDecoded of a " + v.Type().String())
	}
	next := &forms{structured: &structured{typ, weak.Make((*byte)(v.UnsafePointer()))}}
	for {
		before := o.decoded.Load()
		if before != nil {
			if other := before.structured.value(typ); other != nil {
				return other
			}
			next.unstructured = before.unstructured
		}
		if o.decoded.CompareAndSwap(before, next) {
			return value
		}
	}
}
