package jsontext

// Span is a range of a text.
type Span struct{ Start, End int }

// Member finds the member with this name in the object at data[start]. It returns the ranges of the member
// and of its value.
func Member(data []byte, start int, name string) (member, value Span, ok bool) {
	if start = Space(data, start); start >= len(data) || data[start] != '{' {
		return Span{}, Span{}, false
	}
	i, closed := First(data, start)
	for !closed && i >= 0 {
		f, end := readField(data, i)
		if end < 0 {
			break
		}
		if string(f.Key) == name {
			return Span{i, end}, Span{end - len(f.Value), end}, true
		}
		i, closed = Next(data, end, '}')
	}
	return Span{}, Span{}, false
}

// AppendWithout appends the JSON of an object without the member at a path of names, if it exists.
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
