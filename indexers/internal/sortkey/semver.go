package sortkey

import "strings"

// The key of a version is its three numbers, followed by release, or by an entry for each pre-release
// identifier and a terminator. Pre-releases come before the release, numbers before words, and fewer
// identifiers before more.
const (
	endOfIdentifiers  = 0
	numericIdentifier = 1
	wordIdentifier    = 2
	releaseRank       = 3
)

// maxDigits is the maximum length of a number, which is stored in one byte.
const maxDigits = 255

// encodeSemVer also accepts a leading v, and versions of one or two numbers.
func encodeSemVer(text string) (string, bool) {
	text, build, hasBuild := strings.Cut(text, "+")
	if hasBuild && !areIdentifiers(build) {
		return "", false
	}
	text, prerelease, hasPrerelease := strings.Cut(strings.TrimPrefix(text, "v"), "-")
	numbers := strings.Split(text, ".")
	if len(numbers) > 3 || hasPrerelease && !areIdentifiers(prerelease) {
		return "", false
	}
	var b []byte
	for i := range 3 {
		n := "0"
		if i < len(numbers) {
			n = numbers[i]
		}
		if !isNumeric(n) {
			return "", false
		}
		b = appendNumber(b, n)
	}
	if !hasPrerelease {
		return string(append(b, releaseRank)), true
	}
	for id := range strings.SplitSeq(prerelease, ".") {
		switch {
		case strings.Trim(id, "0123456789") != "":
			b = append(append(append(b, wordIdentifier), id...), 0)
		case isNumeric(id):
			b = appendNumber(append(b, numericIdentifier), id)
		default:
			return "", false
		}
	}
	return string(append(b, endOfIdentifiers)), true
}

// areIdentifiers reports whether s is a list of identifiers separated by dots.
func areIdentifiers(s string) bool {
	for id := range strings.SplitSeq(s, ".") {
		if id == "" || strings.Trim(id,
			"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" {
			return false
		}
	}
	return true
}

// isNumeric reports whether s is a number without leading zeros.
func isNumeric(s string) bool {
	return s != "" && len(s) <= maxDigits && strings.Trim(s, "0123456789") == "" && (s == "0" || s[0] != '0')
}

// appendNumber writes the length first: a number with more digits is larger.
func appendNumber(b []byte, digits string) []byte {
	return append(append(b, byte(len(digits))), digits...)
}

func decodeSemVer(key string) (string, bool) {
	number := func() (string, bool) {
		if key == "" || len(key) < 1+int(key[0]) {
			return "", false
		}
		n := key[1 : 1+int(key[0])]
		key = key[1+len(n):]
		return n, true
	}
	var parts [3]string
	for i := range parts {
		var ok bool
		if parts[i], ok = number(); !ok {
			return "", false
		}
	}
	var ids []string
	for key != "" {
		kind := key[0]
		key = key[1:]
		var id string
		ok := true
		switch kind {
		case numericIdentifier:
			id, ok = number()
		case wordIdentifier:
			id, key, ok = strings.Cut(key, "\x00")
		case releaseRank, endOfIdentifiers:
			text := strings.Join(parts[:], ".")
			if len(ids) > 0 {
				text += "-" + strings.Join(ids, ".")
			}
			return text, key == "" && (kind == releaseRank) == (len(ids) == 0)
		default:
			return "", false
		}
		if !ok {
			return "", false
		}
		ids = append(ids, id)
	}
	return "", false
}
