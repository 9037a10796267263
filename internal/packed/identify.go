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

// scanRootMember scans a member of the object itself.
func (m *memberCutter) scanRootMember(start, at int, key []byte, node *pruneNode) int {
	identity := &m.identity
	switch string(key) {
	case "apiVersion":
		return m.scanUniqueString(&identity.hasVersion, start, at, &identity.apiVersion)
	case "kind":
		return m.scanUniqueString(&identity.hasKind, start, at, &identity.kind)
	case "metadata":
		if identity.hasMeta {
			return m.failUnsupported()
		}
		identity.hasMeta = true
		m.markKeptStart(start)
		end := m.scanMetadata(at, node)
		m.markKeptEnd(end)
		return end
	}
	if jsontext.ShadowsTypeMeta(textOf(key)) {
		return m.failUnsupported()
	}
	return m.scanMember(start, at, key, node)
}

// scanUniqueString scans the value of a key that must be a string and must not occur twice.
func (m *memberCutter) scanUniqueString(isFound *bool, start, at int, target *scannedString) int {
	if *isFound || at >= len(m.data) {
		if at >= len(m.data) {
			return m.fail(at)
		}
		return m.failUnsupported()
	}
	*isFound = true
	if m.data[at] != '"' {
		return m.failUnsupported()
	}
	m.markKeptStart(start)
	end := m.scanString(at, target)
	m.markKeptEnd(end)
	return end
}

// scanString scans the value at i. Other values than strings leave into empty.
func (s *scanner) scanString(i int, target *scannedString) int {
	*target = scannedString{}
	if i >= len(s.data) || s.data[i] != '"' {
		return s.skip(i, 2)
	}
	end := jsontext.ScanString(s.data, i+1)
	if end < 0 {
		return s.fail(^end)
	}
	raw := s.data[i+1 : end-1]
	*target = scannedString{raw: raw, offset: i + 1}
	if !isUnescapedASCII(raw) {
		*target = scannedString{raw: jsontext.AppendUnescaped(nil, raw), offset: -1}
	}
	return end
}

// scanMetadata scans the value at i as metadata. node is the node of the object around it.
func (s *scanner) scanMetadata(i int, node *pruneNode) int {
	if i >= len(s.data) || s.data[i] != '{' {
		return s.skip(i, 1)
	}
	child, _ := node.memberChild([]byte("metadata"))
	return s.scanObject(i, 1, metadataObject, child)
}

func (m *memberCutter) scanMetadataMember(start, at int, key []byte, node *pruneNode) int {
	if target := m.identity.destination(key); target != nil {
		m.markKeptStart(start)
		end := m.scanString(at, target)
		m.markKeptEnd(end)
		return end
	}
	if string(key) == "labels" {
		return m.scanLabels(start, at, node)
	}
	return m.scanMember(start, at, key, node)
}

// destination returns the destination of a metadata key, or nil.
func (f *identityFields) destination(key []byte) *scannedString {
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

// scanLabels scans the labels and records their position unless they are complex.
func (m *memberCutter) scanLabels(start, at int, node *pruneNode) int {
	identity := &m.identity
	identity.labels, identity.complexLabels = byteRange{}, false
	end := m.scanMember(start, at, []byte("labels"), node)
	child, pruned := node.memberChild([]byte("labels"))
	switch {
	case end < 0, pruned && child == nil, m.data[at] != '{':
	case !pruned && areSimpleLabels(m.data[at:end]):
		identity.labels = byteRange{at, end}
	default:
		identity.complexLabels = true
	}
	return end
}

// isUnescapedASCII reports whether the content of a JSON string is ASCII without escapes.
func isUnescapedASCII(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf || c == '\\' {
			return false
		}
	}
	return true
}
