package packed

// reuse returns the object that is held under the key of the one at data[start:end], if it has the same JSON,
// or nil.
func (s *scanner) reuse(start, end int, held func(key string) *Object) *Object {
	found := &s.found
	s.key = s.key[:0]
	if len(found.namespace.raw) > 0 {
		s.key = append(append(s.key, found.namespace.raw...), '/')
	}
	s.key = append(s.key, found.name.raw...)
	o := held(textOf(s.key))
	if o == nil || o.class.kept != nil || o.Version() != string(found.rv.raw) {
		return nil // nearly all that differs has another version
	}
	same := false
	err := o.Peek(func(json []byte) error {
		same = s.reads(json, start, end)
		return nil
	})
	if err != nil || !same {
		return nil
	}
	return o
}

// reads reports whether what stays of data[start:end] is this text.
func (s *scanner) reads(text []byte, start, end int) bool {
	at, from := 0, start
	for _, cut := range s.cuts {
		if !continues(text, at, s.data[from:cut.start]) {
			return false
		}
		at, from = at+cut.start-from, cut.end
	}
	return continues(text, at, s.data[from:end]) && at+end-from == len(text)
}

// continues reports whether the text goes on with a part at an offset.
func continues(text []byte, at int, part []byte) bool {
	return at+len(part) <= len(text) && string(text[at:at+len(part)]) == string(part)
}
