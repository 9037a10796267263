package dynamicinformer

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ConversionError reports an object that does not fit a Go type.
type ConversionError struct {
	// GVR and Key tell the object: its type, and namespace/name, or name.
	GVR schema.GroupVersionResource
	Key string
	// Type is the Go type.
	Type reflect.Type
	// Err is why. With Strict, runtime.IsStrictDecodingError tells fields that Type has not.
	Err error
}

// Error names the object, the type and why.
func (e *ConversionError) Error() string {
	return fmt.Sprintf("%s %s does not fit %s: %v", formatGVR(e.GVR), e.Key, e.Type, e.Err)
}

// Unwrap returns why.
func (e *ConversionError) Unwrap() error { return e.Err }
