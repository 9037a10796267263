package decode

import (
	"reflect"

	"sigs.k8s.io/json"
)

// Decoder decodes into one type of struct. It is safe for concurrent use.
type Decoder struct{ typ reflect.Type }

// For returns the decoder of a type of struct.
func For(typ reflect.Type) *Decoder { return &Decoder{typ} }

// Decode decodes data into what out points to, which must be zero.
func (d *Decoder) Decode(data []byte, out reflect.Value) error {
	return json.UnmarshalCaseSensitivePreserveInts(data, out.Interface())
}
