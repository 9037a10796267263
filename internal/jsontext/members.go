package jsontext

import "iter"

// EnterContainer consumes the opening bracket at i. It returns the offset of the first member or element, or
// the end of an empty object or array.
func EnterContainer(data []byte, i int) (next int, closed bool) {
	closing := data[i] + 2 // } and ] follow { and [ after one other character
	if i++; i < len(data) && data[i] <= ' ' {
		i = SkipSpace(data, i)
	}
	if i < len(data) && data[i] == closing {
		return i + 1, true
	}
	return i, false
}

// NextMember consumes the comma or closing bracket after the member or element that ends at i. It returns the
// offset of the next one, or the end of the object or array.
func NextMember(data []byte, i int, closing byte) (next int, closed bool) {
	if i >= len(data) || data[i] <= ' ' {
		if i = SkipSpace(data, i); i >= len(data) {
			return ^i, false
		}
	}
	switch data[i] {
	case ',':
		if i++; i < len(data) && data[i] <= ' ' {
			i = SkipSpace(data, i)
		}
		return i, false
	case closing:
		return i + 1, true
	}
	return ^i, false
}

// ScanKey reads the key and colon at i. It returns the end of the key including its closing quote, the offset
// of the value, and whether the key is encoded (see ScanAnyString).
func ScanKey(data []byte, i int) (end, value int, encoded bool) {
	if i >= len(data) || data[i] != '"' {
		return ^i, ^i, false
	}
	if end, encoded = ScanAnyString(data, i+1); end < 0 {
		return end, end, false
	}
	if end+1 < len(data) && data[end] == ':' && data[end+1] > ' ' {
		return end, end + 1, encoded
	}
	return end, SkipColon(data, end), encoded
}

// Field is a member of an object.
type Field struct {
	// Key is the unescaped key, Value the JSON of the value.
	Key, Value []byte
	// Start and End are the offsets of the member.
	Start, End int
}

// Members iterates over the members of the object in data, and checks all of data. If data is not an object,
// the last pair has a *SyntaxError.
func Members(data []byte) iter.Seq2[Field, error] {
	return func(yield func(Field, error) bool) {
		i, closed := SkipSpace(data, 0), false
		if i < len(data) && data[i] == '{' {
			i, closed = EnterContainer(data, i)
		} else {
			i = ^i
		}
		for !closed && i >= 0 {
			m, end := readField(data, i)
			if i = end; end < 0 {
				break
			}
			if !yield(m, nil) {
				return
			}
			i, closed = NextMember(data, end, '}')
		}
		if i >= 0 {
			if i = SkipSpace(data, i); i == len(data) {
				return
			}
			i = ^i
		}
		yield(Field{}, &SyntaxError{Offset: ^i, Reason: SkipProblem(data, ^i)})
	}
}

func readField(data []byte, i int) (m Field, end int) {
	key, value, encoded := ScanKey(data, i)
	if value < 0 {
		return m, value
	}
	if m.Key = data[i+1 : key-1]; encoded {
		m.Key = AppendUnescaped(nil, m.Key)
	}
	end, tooDeep := Skip(data, value, maxLevels)
	if tooDeep {
		return m, ^value
	}
	if end >= 0 {
		m.Value, m.Start, m.End = data[value:end], i, end
	}
	return m, end
}

// AppendWithout appends the JSON of an object without the member at a path of names, if it exists.
func AppendWithout(dst, data []byte, path ...string) []byte {
	start, end, object := 0, 0, 0 // ranges in data of the member, and the start of its value
	for _, name := range path {
		f, found := findMember(data, object, name)
		if !found {
			return append(dst, data...)
		}
		start, end, object = f.Start, f.End, f.End-len(f.Value)
	}
	if next := SkipSpace(data, end); next < len(data) && data[next] == ',' {
		end = SkipSpace(data, next+1)
	} else {
		for start > 0 && IsSpace(data[start-1]) {
			start--
		}
		if start > 0 && data[start-1] == ',' {
			start--
		}
	}
	return append(append(dst, data[:start]...), data[end:]...)
}

func findMember(data []byte, i int, name string) (f Field, found bool) {
	for f, err := range Members(data[i:]) {
		if err == nil && string(f.Key) == name {
			f.Start, f.End = f.Start+i, f.End+i
			return f, true
		}
	}
	return f, false
}
