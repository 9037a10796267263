package packed

import (
	"unicode/utf8"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// scannedString is a string found by the scanner.
type scannedString struct {
	raw    []byte // unquoted and unescaped
	offset int    // offset of raw in the data; -1 if it had escapes
}

// identityFields holds the fields of an object that the scanner extracts.
type identityFields struct {
	apiVersion, kind         scannedString
	name, namespace, uid, rv scannedString
	labels                   byteRange // empty if there are no labels or complex ones
	complexLabels            bool      // labels have to be decoded

	hasVersion, hasKind, hasMeta bool
}

// object scans the object at i and returns the offset after it.
func (s *scanner) object(i int, found *identityFields, root *pruneNode) int {
	if i >= len(s.data) || s.data[i] != '{' {
		return s.fail(i)
	}
	m := memberCutter{scanner: s}
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
			i = m.uniqueString(&found.hasVersion, start, at, &found.apiVersion)
		case "kind":
			i = m.uniqueString(&found.hasKind, start, at, &found.kind)
		case "metadata":
			if found.hasMeta {
				return s.unsupported()
			}
			found.hasMeta = true
			below, _ := root.member(key)
			m.markKeptStart(start)
			i = s.metadata(at, found, below)
			m.markKeptEnd(i)
		default:
			if jsontext.ShadowsTypeMeta(textOf(key)) {
				return s.unsupported()
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

// uniqueString scans the value of a key that must be a string and must not occur twice.
func (m *memberCutter) uniqueString(found *bool, start, at int, into *scannedString) int {
	if *found || at >= len(m.data) {
		if at >= len(m.data) {
			return m.fail(at)
		}
		return m.unsupported()
	}
	*found = true
	if m.data[at] != '"' {
		return m.unsupported()
	}
	m.markKeptStart(start)
	end := m.string(at, into)
	m.markKeptEnd(end)
	return end
}

// string scans the value at i. Other values than strings leave into empty.
func (s *scanner) string(i int, into *scannedString) int {
	*into = scannedString{}
	if i >= len(s.data) || s.data[i] != '"' {
		return s.skip(i, 2)
	}
	end := jsontext.ScanString(s.data, i+1)
	if end < 0 {
		return s.fail(^end)
	}
	raw := s.data[i+1 : end-1]
	*into = scannedString{raw: raw, offset: i + 1}
	if !isPlain(raw) {
		*into = scannedString{raw: plainText(raw), offset: -1}
	}
	return end
}

// metadata scans the value at i as metadata.
func (s *scanner) metadata(i int, found *identityFields, b *pruneNode) int {
	if i >= len(s.data) || s.data[i] != '{' {
		return s.skip(i, 1)
	}
	m := memberCutter{scanner: s, depth: 1}
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
			m.markKeptStart(start)
			i = s.string(at, into)
			m.markKeptEnd(i)
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

// field returns the destination of a metadata key, or nil.
func (f *identityFields) field(key []byte) *scannedString {
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

// labels scans the labels and records their position unless they are complex.
func (m *memberCutter) labels(start, at int, found *identityFields, b *pruneNode) int {
	found.labels, found.complexLabels = byteRange{}, false
	end := m.member(start, at, []byte("labels"), b)
	below, pruned := b.member([]byte("labels"))
	switch {
	case end < 0, pruned && below == nil, m.data[at] != '{':
	case !pruned && plainLabels(m.data[at:end]):
		found.labels = byteRange{at, end}
	default:
		found.complexLabels = true
	}
	return end
}

// isPlain reports whether the content of a JSON string is ASCII without escapes.
func isPlain(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf || c == '\\' {
			return false
		}
	}
	return true
}

// plainText unescapes the content of a JSON string.
func plainText(text []byte) []byte {
	if isPlain(text) {
		return text
	}
	return jsontext.AppendUnescaped(nil, text)
}
