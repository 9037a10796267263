package packed

import (
	"reflect"
	"unsafe"
	"weak"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// decodedCopies are weak references to decoded copies of an object. They are immutable.
type decodedCopies struct {
	unstructured weak.Pointer[unstructured.Unstructured]
	typed        *typedCopy // nil if there was none
}

// paddedCopy is a decoded copy with padding, so that only a few fit into one span of the runtime's allocator.
// To resolve a weak pointer, the runtime walks a list of all weak pointers into the span. Without padding, a
// copy has 8 bytes and a span holds a thousand of them.
type paddedCopy struct {
	unstructured.Unstructured
	_ [120]byte
}

// newCopy returns an empty object with fast weak pointers to it.
func newCopy() *unstructured.Unstructured { return &new(paddedCopy).Unstructured }

// typedCopy is a weak reference to the first byte of a typed copy, whose type is known at run time.
type typedCopy struct {
	typ     reflect.Type
	pointer weak.Pointer[byte]
}

// value returns a pointer to the struct. It returns nil if the struct was freed or has another type.
func (s *typedCopy) value(typ reflect.Type) any {
	if s == nil || s.typ != typ {
		return nil
	}
	structPointer := s.pointer.Value()
	if structPointer == nil {
		return nil
	}
	return reflect.NewAt(typ, unsafe.Pointer(structPointer)).Interface()
}

// publish makes u the shared decoded copy and returns it. It returns the existing copy if there is one.
func (o *Object) publish(u *unstructured.Unstructured) *unstructured.Unstructured {
	next := &decodedCopies{unstructured: weak.Make(u)}
	for {
		previous := o.decoded.Load()
		if previous != nil {
			if existing := previous.unstructured.Value(); existing != nil {
				return existing
			}
			next.typed = previous.typed
		}
		if o.decoded.CompareAndSwap(previous, next) {
			return u
		}
	}
}

// Decoded returns the last result of Unstructured if it is still in memory, or nil.
func (o *Object) Decoded() *unstructured.Unstructured {
	if original := o.info.unpackableObject; original != nil {
		return original
	}
	if copies := o.decoded.Load(); copies != nil {
		return copies.unstructured.Value()
	}
	return nil
}

// DecodedAs is described at dynamicinformer.PackedObject. It marks the object as read if it returns a copy.
func (o *Object) DecodedAs(typ reflect.Type) any {
	if copies := o.decoded.Load(); copies != nil {
		if value := copies.typed.value(typ); value != nil {
			o.MarkRead()
			return value
		}
	}
	return nil
}

// KeepDecoded is described at dynamicinformer.PackedObject.
func (o *Object) KeepDecoded(value any) any {
	v := reflect.ValueOf(value)
	typ := v.Type().Elem()
	if typ.Kind() != reflect.Struct {
		panic("packed: KeepDecoded of a " + v.Type().String())
	}
	next := &decodedCopies{typed: &typedCopy{typ, weak.Make((*byte)(v.UnsafePointer()))}}
	for {
		previous := o.decoded.Load()
		if previous != nil {
			if existing := previous.typed.value(typ); existing != nil {
				return existing
			}
			next.unstructured = previous.unstructured
		}
		if o.decoded.CompareAndSwap(previous, next) {
			return value
		}
	}
}
