package packed

import (
	"unicode/utf8"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// value is a string of the data.
type value struct {
	raw []byte // without quotes, or what it stands for
	at  int    // where raw is in the data; -1: it is not, because of escapes
}

// identityOf is what a scan finds out about an object.
type identityOf struct {
	apiVersion, kind         value
	name, namespace, uid, rv value
	labels                   span // empty: there are none, or odd ones
	oddLabels                bool // whether there are labels, and which, takes decoding to know

	hasVersion, hasKind, hasMeta bool
}

// object reads the object at i, the whole one, and returns the offset after it.
func (s *scanner) object(i int, found *identityOf, root *branch) int {
	if i >= len(s.data) || s.data[i] != '{' {
		return s.fail(i)
	}
	m := members{scanner: s}
	i, closed := m.first(i)
	for !closed {
		if i < 0 {
			return -1
		}
		start := i
		key, at := m.key(i)
		if at < 0 {
			return -1
		}
		switch string(key) {
		case "apiVersion":
			i = m.only(&found.hasVersion, start, at, &found.apiVersion)
		case "kind":
			i = m.only(&found.hasKind, start, at, &found.kind)
		case "metadata":
			if found.hasMeta {
				return s.unusual()
			}
			found.hasMeta = true
			below, _ := root.member(key)
			m.stay(start)
			i = s.metadata(at, found, below)
			m.stayed(i)
		default:
			if jsontext.Shadows(textOf(key)) {
				return s.unusual()
			}
			i = m.member(start, at, key, root)
		}
		if i < 0 {
			return -1
		}
		i, closed = m.next(i)
	}
	return i
}

// only reads the value of a key that must occur once, and must be a string.
func (m *members) only(seen *bool, start, at int, into *value) int {
	if *seen || at >= len(m.data) {
		if at >= len(m.data) {
			return m.fail(at)
		}
		return m.unusual()
	}
	*seen = true
	if m.data[at] != '"' {
		return m.unusual()
	}
	m.stay(start)
	end := m.string(at, into)
	m.stayed(end)
	return end
}

// string reads the value at i. What is no string is no value.
func (s *scanner) string(i int, into *value) int {
	*into = value{}
	if i >= len(s.data) || s.data[i] != '"' {
		return s.skip(i, 2)
	}
	end := jsontext.Text(s.data, i+1)
	if end < 0 {
		return s.fail(^end)
	}
	raw := s.data[i+1 : end-1]
	*into = value{raw: raw, at: i + 1}
	if !isPlain(raw) {
		*into = value{raw: plainText(raw), at: -1}
	}
	return end
}

// metadata reads metadata, the value at i.
func (s *scanner) metadata(i int, found *identityOf, b *branch) int {
	if i >= len(s.data) || s.data[i] != '{' {
		return s.skip(i, 1)
	}
	m := members{scanner: s, depth: 1}
	i, closed := m.first(i)
	for !closed {
		if i < 0 {
			return -1
		}
		start := i
		key, at := m.key(i)
		if at < 0 {
			return -1
		}
		into := found.field(key)
		switch {
		case into != nil:
			m.stay(start)
			i = s.string(at, into)
			m.stayed(i)
		case string(key) == "labels":
			i = m.labels(start, at, found, b)
		default:
			i = m.member(start, at, key, b)
		}
		if i < 0 {
			return -1
		}
		i, closed = m.next(i)
	}
	return i
}

// field returns where the value of a key of metadata belongs, or nil.
func (f *identityOf) field(key []byte) *value {
	switch string(key) {
	case "name":
		return &f.name
	case "namespace":
		return &f.namespace
	case "uid":
		return &f.uid
	case "resourceVersion":
		return &f.rv
	}
	return nil
}

// labels reads the labels, and says where they are if they can be read there.
func (m *members) labels(start, at int, found *identityOf, b *branch) int {
	found.labels, found.oddLabels = span{}, false
	end := m.member(start, at, []byte("labels"), b)
	below, pruned := b.member([]byte("labels"))
	switch {
	case end < 0, pruned && below == nil, m.data[at] != '{':
	case !pruned && plainLabels(m.data[at:end]):
		found.labels = span{at, end}
	default:
		found.oddLabels = true
	}
	return end
}

// isPlain reports whether the text of a string is what it stands for.
func isPlain(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf || c == '\\' {
			return false
		}
	}
	return true
}

// plainText returns what the text of a string stands for.
func plainText(text []byte) []byte {
	if isPlain(text) {
		return text
	}
	return jsontext.AppendText(nil, text)
}
