package jsontext

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
