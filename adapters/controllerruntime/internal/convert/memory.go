//go:build !purego

package convert

import (
	"reflect"
	"unsafe"

	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// unexported returns a field of an addressable struct; nil if there is none.
func unexported(v reflect.Value, name string) any {
	field := v.FieldByName(name)
	if !field.IsValid() {
		return nil
	}
	return reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem().Interface()
}

// methodValue is the memory of a func value that was made from a method of a handler.
type methodValue struct {
	_        uintptr // the code
	receiver handler.EventHandler
}

// receiverOf returns the words of the receiver of a method value, which can be compared.
func receiverOf[F any](f *F) [2]uintptr {
	return *(*[2]uintptr)(unsafe.Pointer(&(*(**methodValue)(unsafe.Pointer(f))).receiver))
}

// unchangedHandler returns the handler that handler.WithLowPriorityWhenUnchanged has wrapped, or nil for
// other Funcs. Handlers of owners are always wrapped. The wrapper holds method values of the handler, so nil
// is also returned if the method values of a known handler do not have the expected memory.
func unchangedHandler(f handler.Funcs) handler.EventHandler {
	var probe handler.EventHandler = &handler.EnqueueRequestForObject{}
	funcs, ok := handler.WithLowPriorityWhenUnchanged(probe).(handler.Funcs)
	if !ok || !haveSameCode(f.CreateFunc, funcs.CreateFunc) ||
		!haveSameCode(f.UpdateFunc, funcs.UpdateFunc) ||
		!haveSameCode(f.DeleteFunc, funcs.DeleteFunc) {
		return nil
	}
	receiver := receiverOf(&f.CreateFunc)
	if receiverOf(&funcs.CreateFunc) != *(*[2]uintptr)(unsafe.Pointer(&probe)) ||
		receiverOf(&f.UpdateFunc) != receiver || receiverOf(&f.DeleteFunc) != receiver {
		return nil
	}
	return (*(**methodValue)(unsafe.Pointer(&f.CreateFunc))).receiver
}

// haveSameCode reports whether two functions, which may be nil, have the same code.
func haveSameCode(a, b any) bool {
	code := reflect.ValueOf(a).Pointer()
	return code != 0 && code == reflect.ValueOf(b).Pointer()
}
