package sortkey

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Type determines how values are parsed, compared and formatted.
type Type uint8

const (
	// Any accepts texts, numbers and booleans as text; compared as bytes.
	Any Type = iota
	// String accepts only text; compared as bytes, which is the order of code points.
	String
	// Int is a 64-bit integer.
	Int
	// Number is a decimal number of any precision.
	Number
	Bool
	// Quantity is a Kubernetes quantity: 100m, 1Gi.
	Quantity
	// Duration is a duration in Go syntax, 2160h0m0s, or with days, weeks and years of 365 days: 90d.
	Duration
	// Time is a time in RFC 3339 format.
	Time
	// IP is an IPv4 or IPv6 address; IPv4 comes first.
	IP
	// SemVer is a semantic version, compared by precedence; build metadata is dropped.
	SemVer
	// Date is a day: 2026-01-31.
	Date
	// CIDR is an address range, 10.0.0.0/8, sorted by the first address, then larger ranges first.
	CIDR
)

// TypeNamed returns the type with a name, whose case is ignored: queries write it in lower case.
func TypeNamed(name string) (Type, bool) {
	i := slices.IndexFunc(codecs[:], func(c codec) bool { return strings.EqualFold(c.name, name) })
	return Type(max(i, 0)), i > 0
}

// String returns the name; "" for Any.
func (t Type) String() string { return codecs[t].name }

// IsText reports whether values of the type are text that supports prefixes.
func (t Type) IsText() bool { return t == Any || t == String }

// codec encodes and decodes the values of one type.
type codec struct {
	name, example string
	encode        func(text string) (string, bool)
	decode        func(key string) (string, bool)
}

func identity(s string) (string, bool) { return s, true }

// encoder returns the function encode of a codec.
func encoder[T any](parse func(text string) (T, bool), keyOf func(T) string) func(string) (string, bool) {
	return func(text string) (string, bool) {
		value, ok := parse(text)
		if !ok {
			return "", false
		}
		return keyOf(value), true
	}
}

// decoder returns the function decode of a codec.
func decoder[T fmt.Stringer](valueOf func(key string) (T, bool)) func(string) (string, bool) {
	return func(key string) (string, bool) {
		value, ok := valueOf(key)
		return value.String(), ok
	}
}

var codecs = [...]codec{
	Any:      {"", "text", identity, identity},
	String:   {"String", "text", identity, identity},
	Int:      {"Int", "42", encodeInt, decodeInt},
	Number:   {"Number", "2.5", encoder(parseDecimal, decimal.key), decoder(decimalOfKey)},
	Bool:     {"Bool", "true", encodeBool, encodeBool},
	Quantity: {"Quantity", "500Mi", encoder(parseQuantity, decimal.key), decoder(decimalOfKey)},
	Duration: {"Duration", "36h30m", encoder(ParseDuration, keyOfInt[time.Duration]), decoder(intOfKey[time.Duration])},
	Time:     {"Time", "2026-01-31T00:00:00Z", encodeTime, decodeTime},
	IP:       {"IP", "192.0.2.1", encoder(parseIP, addressKey), decoder(addressOfKey)},
	SemVer:   {"SemVer", "1.2.3", encodeSemVer, decodeSemVer},
	Date:     {"Date", "2026-01-31", encodeDate, decodeDate},
	CIDR:     {"CIDR", "10.0.0.0/8", encodeCIDR, decodeCIDR},
}

// Example returns a value of the type for messages.
func (t Type) Example() string { return codecs[t].example }

// Key returns the key of a value. It returns false if text is not a value of the type.
func (t Type) Key(text string) (string, bool) { return codecs[t].encode(text) }

// ValueOf returns the canonical form of a key's value. It returns false for an invalid key.
func (t Type) ValueOf(key string) (string, bool) { return codecs[t].decode(key) }

// Canonical returns the same text for all equal values, such as 1 for 1.0.
func (t Type) Canonical(text string) (string, bool) {
	if t.IsText() || t == Bool {
		return codecs[t].encode(text)
	}
	key, ok := t.Key(text)
	if !ok {
		return "", false
	}
	return t.ValueOf(key)
}

// Mismatch returns the error text for text that is not a value of the type.
func (t Type) Mismatch(text string) string {
	return fmt.Sprintf("%q is not of type %s; write it like %s", text, t, t.Example())
}

// Fixed-size keys are big-endian with the sign bit flipped, so that negative numbers come first.
const signBit = 1 << 63

func keyOfInt[T ~int64](i T) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(i)^signBit)
	return string(b[:])
}

func intOfKey[T ~int64](key string) (i T, ok bool) {
	if len(key) != 8 {
		return 0, false
	}
	return T(binary.BigEndian.Uint64([]byte(key)) ^ signBit), true
}

// encodeInt also accepts numbers such as 3.0 and 1e3, which some JSON encoders write for integers.
func encodeInt(text string) (string, bool) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return keyOfInt(i), true
	}
	d, ok := parseDecimal(text)
	if !ok {
		return "", false
	}
	i, ok := d.int64()
	return keyOfInt(i), ok
}

func decodeInt(key string) (string, bool) {
	i, ok := intOfKey[int64](key)
	return strconv.FormatInt(i, 10), ok
}

// encodeBool also decodes: the key is the text, because "false" sorts before "true".
func encodeBool(text string) (string, bool) { return text, text == "false" || text == "true" }
