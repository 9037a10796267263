package sortkey

import (
	"encoding/binary"
	"strconv"
)

// Fixed-size keys are big-endian with the sign bit flipped, so that negative numbers come first.
const signBit = 1 << 63

func keyOfInt(i int64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(i)^signBit)
	return string(b[:])
}

func intOfKey(key string) int64 {
	return int64(binary.BigEndian.Uint64([]byte(key)) ^ signBit)
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
	if len(key) != 8 {
		return "", false
	}
	return strconv.FormatInt(intOfKey(key), 10), true
}

// encodeBool also decodes: the key is the text, because "false" sorts before "true".
func encodeBool(text string) (string, bool) { return text, text == "false" || text == "true" }
