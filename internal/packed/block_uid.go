package packed

import "encoding/hex"

const (
	// uidLength is that of a UID as API servers make them, and numberLength that of the number it stands for.
	uidLength    = 36
	numberLength = 16
)

// groups are where the hexadecimal digits of a UID are, between its dashes.
var groups = [...]struct{ from, to int }{{0, 8}, {9, 13}, {14, 18}, {19, 23}, {24, uidLength}}

// appendNumber appends the number that a UID stands for. It returns false, and what there was, for one that
// is not written as appendUID does.
func appendNumber(to []byte, uid string) ([]byte, bool) {
	if len(uid) != uidLength {
		return to, false
	}
	number, text := to, bytesOf(uid)
	for k, g := range groups {
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

// appendUID appends the UID of a number.
func appendUID(to []byte, number string) []byte {
	for k, g := range groups {
		if k > 0 {
			to = append(to, '-')
		}
		digits := (g.to - g.from) / 2
		to = hex.AppendEncode(to, bytesOf(number[:digits]))
		number = number[digits:]
	}
	return to
}
