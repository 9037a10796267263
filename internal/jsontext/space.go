package jsontext

// IsSpace reports whether a byte is white space between the tokens of JSON.
func IsSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// Space returns the offset of the first byte from i on that is not white space; the length of the data if there is none.
func Space(data []byte, i int) int {
	for i < len(data) && data[i] <= ' ' && IsSpace(data[i]) {
		i++
	}
	return i
}
