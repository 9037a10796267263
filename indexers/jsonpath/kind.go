package jsonpath

// Kind is the JSON kind of a value.
type Kind uint8

const (
	// KindInvalid is the kind of the zero [Value], and of Go values that JSON does not have.
	KindInvalid Kind = iota
	KindNull
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)

var kindNames = [...]string{"invalid", "null", "bool", "number", "string", "array", "object"}

// String names the kind as JSON does: "null", "bool", "number", "string", "array" or "object".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[KindInvalid]
}
