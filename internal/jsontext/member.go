package jsontext

// Span is a part of a text.
type Span struct{ Start, End int }

// Member finds the member of this name in the object at data[start]. Its name is written without escapes. The first
// span is that of the whole member, the second that of its value.
func Member(data []byte, start int, name string) (member, value Span, ok bool) {
	if start = Space(data, start); start >= len(data) || data[start] != '{' {
		return Span{}, Span{}, false
	}
	for i := Space(data, start+1); i < len(data) && data[i] == '"'; i = Space(data, i+1) {
		end := Text(data, i+1)
		if end < 0 {
			break
		}
		begin := Colon(data, end)
		if begin < 0 {
			break
		}
		after, ok, _ := SkipValue(data, begin)
		if !ok {
			break
		}
		if string(data[i+1:end-1]) == name {
			return Span{i, after}, Span{begin, after}, true
		}
		if i = Space(data, after); i >= len(data) || data[i] != ',' {
			break
		}
	}
	return Span{}, Span{}, false
}

// AppendWithout appends the JSON of an object without the member at a path of names, if it has one.
func AppendWithout(dst, data []byte, path ...string) []byte {
	cut, value := Span{}, Span{}
	for _, name := range path {
		var ok bool
		if cut, value, ok = Member(data, value.Start, name); !ok {
			return append(dst, data...)
		}
	}
	if next := Space(data, cut.End); next < len(data) && data[next] == ',' {
		cut.End = Space(data, next+1)
	} else {
		for cut.Start > 0 && IsSpace(data[cut.Start-1]) {
			cut.Start--
		}
		if cut.Start > 0 && data[cut.Start-1] == ',' {
			cut.Start--
		}
	}
	return append(append(dst, data[:cut.Start]...), data[cut.End:]...)
}
