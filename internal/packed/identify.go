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

// rootMember scans a member of the object itself.
func (m *memberCutter) rootMember(start, at int, key []byte, b *pruneNode) int {
	found := &m.identity
	switch string(key) {
	case "apiVersion":
		return m.uniqueString(&found.hasVersion, start, at, &found.apiVersion)
	case "kind":
		return m.uniqueString(&found.hasKind, start, at, &found.kind)
	case "metadata":
		if found.hasMeta {
			return m.unsupported()
		}
		found.hasMeta = true
		m.markKeptStart(start)
		end := m.metadata(at, b)
		m.markKeptEnd(end)
		return end
	}
	if jsontext.ShadowsTypeMeta(textOf(key)) {
		return m.unsupported()
	}
	return m.member(start, at, key, b)
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

// metadata scans the value at i as metadata. b is the node of the object around it.
func (s *scanner) metadata(i int, b *pruneNode) int {
	if i >= len(s.data) || s.data[i] != '{' {
		return s.skip(i, 1)
	}
	below, _ := b.member([]byte("metadata"))
	return s.object(i, 1, metadataObject, below)
}

// metadataMember scans a member of the metadata.
func (m *memberCutter) metadataMember(start, at int, key []byte, b *pruneNode) int {
	if into := m.identity.field(key); into != nil {
		m.markKeptStart(start)
		end := m.string(at, into)
		m.markKeptEnd(end)
		return end
	}
	if string(key) == "labels" {
		return m.labels(start, at, b)
	}
	return m.member(start, at, key, b)
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
func (m *memberCutter) labels(start, at int, b *pruneNode) int {
	found := &m.identity
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
