package sortkey

import (
	"fmt"
	"slices"
)

// Type says how values are read, compared and shown.
type Type uint8

const (
	// Any takes the text of a text, a number or a boolean as it is; it is compared as bytes.
	Any Type = iota
	// String takes text alone, and compares it as bytes, which is the order of the code points.
	String
	// Int is an integer of 64 bits.
	Int
	// Number is a decimal number without limits on its digits.
	Number
	// Bool is false or true.
	Bool
	// Quantity is a number with a unit of Kubernetes: 100m, 1Gi.
	Quantity
	// Duration is a length of time as Go writes it, 2160h0m0s, or with days, weeks and years of 365 days:
	// 90d.
	Duration
	// Time is a moment as RFC 3339 writes it.
	Time
	// IP is an address of IPv4 or IPv6; those of IPv4 come first.
	IP
	// SemVer is a semantic version, compared by its precedence; what follows a "+" is dropped.
	SemVer
	// Date is a day: 2026-01-31.
	Date
	// CIDR is a range of addresses, 10.0.0.0/8, compared by its first address, and then the larger first.
	CIDR
)

var names = []string{"", "string", "int", "number", "bool", "quantity", "duration", "time", "ip", "semver",
	"date", "cidr"}

// Names are what a config calls the types, without Any, which has no name.
func Names() []string { return slices.Clone(names[1:]) }

// Named returns the type of that name.
func Named(name string) (Type, bool) {
	i := slices.Index(names, name)
	return Type(max(i, 0)), i > 0
}

// String is the name; "" for Any.
func (t Type) String() string { return names[t] }

// Text reports whether the values of the type are text that can be searched by its beginning.
func (t Type) Text() bool { return t == Any || t == String }

// codec is how the values of one type are written.
type codec struct {
	example string
	encode  func(text string) (string, bool)
	decode  func(key string) (string, bool)
}

func same(s string) (string, bool) { return s, true }

var codecs = [...]codec{
	Any:      {"text", same, same},
	String:   {"text", same, same},
	Int:      {"42", encodeInt, decodeInt},
	Number:   {"2.5", encodeNumber, decodeDecimal},
	Bool:     {"true", encodeBool, encodeBool},
	Quantity: {"500Mi", encodeQuantity, decodeDecimal},
	Duration: {"36h30m", encodeDuration, decodeDuration},
	Time:     {"2026-01-31T00:00:00Z", encodeTime, decodeTime},
	IP:       {"192.0.2.1", encodeIP, decodeIP},
	SemVer:   {"1.2.3", encodeSemVer, decodeSemVer},
	Date:     {"2026-01-31", encodeDate, decodeDate},
	CIDR:     {"10.0.0.0/8", encodeCIDR, decodeCIDR},
}

// Example is a value of the type, for messages.
func (t Type) Example() string { return codecs[t].example }

// Key gives the key of a value. It is false for text that is not a value of the type.
func (t Type) Key(text string) (string, bool) { return codecs[t].encode(text) }

// Show gives the value of a key in its one canonical form. It is false for what is not a key.
func (t Type) Show(key string) (string, bool) { return codecs[t].decode(key) }

// Canonical gives the canonical form of a value: one text for all that are equal.
func (t Type) Canonical(text string) (string, bool) {
	if t.Text() || t == Bool {
		return codecs[t].encode(text)
	}
	key, ok := t.Key(text)
	if !ok {
		return "", false
	}
	return t.Show(key)
}

// Mismatch says what is wrong with text that is not a value of the type.
func (t Type) Mismatch(text string) string {
	return fmt.Sprintf("%q is not of type %s; write it as %s", text, t, t.Example())
}
