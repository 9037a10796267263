package packed

import "encoding/hex"

const (
	// uidLength is the length of a UID in its usual form, binaryUIDLength its length in binary.
	uidLength       = 36
	binaryUIDLength = 16
)

// uidGroups are the ranges of hexadecimal digits between the dashes of a UID.
var uidGroups = [...]struct{ from, to int }{{0, 8}, {9, 13}, {14, 18}, {19, 23}, {24, uidLength}}

// AppendBinaryUID appends uid in binary. If AppendUID would not restore the same text, it returns to,
// unchanged, and false.
func AppendBinaryUID(to []byte, uid string) ([]byte, bool) {
	if len(uid) != uidLength {
		return to, false
	}
	number, text := to, bytesOf(uid)
	for k, g := range uidGroups {
		var err error
		if number, err = hex.AppendDecode(number, text[g.from:g.to]); err != nil || k > 0 &&
			uid[g.from-1] != '-' {
			return to, false
		}
	}
	for _, c := range text {
		if c >= 'A' && c <= 'F' {
			return to, false
		}
	}
	return number, true
}

// AppendUID appends the text of a binary UID.
func AppendUID(to []byte, number string) []byte {
	for k, g := range uidGroups {
		if k > 0 {
			to = append(to, '-')
		}
		digits := (g.to - g.from) / 2
		to = hex.AppendEncode(to, bytesOf(number[:digits]))
		number = number[digits:]
	}
	return to
}
