package packed

// SkipValue reads the JSON value at data[start] and returns the offset after it. Where it is not ok, more says
// that the reason may be that the data ends too early. Values nested too deeply are not ok either.
func SkipValue(data []byte, start int) (end int, ok, more bool) {
	s := scanner{data: data}
	end = s.skip(start, 0)
	if end < 0 {
		return 0, false, s.stopped == stopEnd
	}
	// A number can go on where the data ends.
	if end == len(data) && data[end-1]-'0' <= 9 {
		return 0, false, true
	}
	return end, true, false
}
