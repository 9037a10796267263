package packed

import "encoding/hex"

const (
	// uidLength is the length of a UID in its usual form, binaryUIDLength its length in binary.
	uidLength       = 36
	binaryUIDLength = 16
)

// uidGroups are the ranges of hexadecimal digits between the dashes of a UID.
var uidGroups = [...]struct{ from, to int }{{0, 8}, {9, 13}, {14, 18}, {19, 23}, {24, uidLength}}

// AppendBinaryUID appends uid in binary. If AppendUID would not restore it, it returns dst and false.
func AppendBinaryUID(dst []byte, uid string) ([]byte, bool) {
	if len(uid) != uidLength {
		return dst, false
	}
	binaryUID, text := dst, bytesOf(uid)
	for k, g := range uidGroups {
		var err error
		if binaryUID, err = hex.AppendDecode(binaryUID, text[g.from:g.to]); err != nil || k > 0 &&
			uid[g.from-1] != '-' {
			return dst, false
		}
	}
	for _, c := range text {
		if c >= 'A' && c <= 'F' {
			return dst, false
		}
	}
	return binaryUID, true
}

// AppendUID appends the text of a binary UID.
func AppendUID(dst []byte, binaryUID string) []byte {
	for k, g := range uidGroups {
		if k > 0 {
			dst = append(dst, '-')
		}
		digits := (g.to - g.from) / 2
		dst = hex.AppendEncode(dst, bytesOf(binaryUID[:digits]))
		binaryUID = binaryUID[digits:]
	}
	return dst
}
