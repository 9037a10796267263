package sortkey

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"time"
)

// Fixed-size keys are big-endian with the sign bit flipped, which puts negative numbers first.
const signBit = 1 << 63

func keyOfInt(i int64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(i)^signBit)
	return string(b[:])
}

func intOfKey(key string) int64 {
	return int64(binary.BigEndian.Uint64([]byte(key)) ^ signBit)
}

// encodeInt also takes numbers such as 3.0 and 1e3, which JSON writers make of integers.
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

// encodeBool is its own inverse: "false" comes before "true" as text too.
func encodeBool(text string) (string, bool) { return text, text == "false" || text == "true" }

func encodeDuration(text string) (string, bool) {
	d, err := time.ParseDuration(text)
	return keyOfInt(int64(d)), err == nil
}

func decodeDuration(key string) (string, bool) {
	if len(key) != 8 {
		return "", false
	}
	return time.Duration(intOfKey(key)).String(), true
}

// encodeTime writes the seconds and, unless there are none, the nanoseconds: a shorter key comes first.
func encodeTime(text string) (string, bool) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return "", false
	}
	key := keyOfInt(t.Unix())
	if n := t.Nanosecond(); n != 0 {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(n))
		key += string(b[:])
	}
	return key, true
}

func decodeTime(key string) (string, bool) {
	var nanos int64
	switch len(key) {
	case 8:
	case 12:
		nanos = int64(binary.BigEndian.Uint32([]byte(key[8:])))
	default:
		return "", false
	}
	return time.Unix(intOfKey(key[:8]), nanos).UTC().Format(time.RFC3339Nano), true
}

func encodeIP(text string) (string, bool) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return "", false
	}
	b := a.Unmap().AsSlice()
	return string(byte(len(b))) + string(b), true
}

func decodeIP(key string) (string, bool) {
	if key == "" || int(key[0]) != len(key)-1 {
		return "", false
	}
	a, ok := netip.AddrFromSlice([]byte(key[1:]))
	return a.String(), ok
}
