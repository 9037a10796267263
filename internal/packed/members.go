package packed

import "github.com/crdcache/crdcache/internal/jsontext"

// memberCutter iterates over the members of an object and cuts out the dropped ones, with the commas.
type memberCutter struct {
	*scanner
	depth int
	// firstDroppedStart is the start of the dropped members before the first kept one, or -1.
	firstDroppedStart int
	// lastKeptEnd is the end of the last kept member and the dropped ones after it, or 0 before the first.
	lastKeptEnd int
}

// firstMember consumes the brace at i and returns the offset of the first member. closed: there is none.
func (m *memberCutter) firstMember(i int) (start int, closed bool) {
	if m.depth >= maxDepth {
		return m.failUnsupported(), false
	}
	m.firstDroppedStart = -1
	return jsontext.EnterContainer(m.data, i)
}

// nextMember consumes the comma or brace after the member that ends at i. It returns the offset of the next
// member. After the last one, closed is true.
func (m *memberCutter) nextMember(i int) (start int, closed bool) {
	if i, closed = jsontext.NextMember(m.data, i, '}'); i < 0 {
		return m.fail(^i), false
	}
	if closed && m.firstDroppedStart >= 0 {
		m.removeRange(m.firstDroppedStart, i-1)
	}
	return i, closed
}

// scanKey reads the key and colon at i and returns the offset of the value.
func (m *memberCutter) scanKey(i int) (scanKey []byte, value int) {
	end, value, encoded := jsontext.ScanKey(m.data, i)
	if value < 0 {
		return nil, m.fail(^value)
	}
	scanKey = m.data[i+1 : end-1]
	if encoded {
		scanKey = jsontext.AppendUnescaped(nil, scanKey)
	}
	return scanKey, value
}

// drop removes the member from start to end.
func (m *memberCutter) drop(start, end int) {
	switch {
	case m.lastKeptEnd > 0:
		m.removeRange(m.lastKeptEnd, end)
		m.lastKeptEnd = end
	case m.firstDroppedStart < 0:
		m.firstDroppedStart = start
	}
}

// markKeptStart marks the start of a kept member. Call it before cuts inside it, to keep them in order.
func (m *memberCutter) markKeptStart(start int) {
	if m.firstDroppedStart >= 0 {
		m.removeRange(m.firstDroppedStart, start)
		m.firstDroppedStart = -1
	}
}

func (m *memberCutter) markKeptEnd(end int) { m.lastKeptEnd = end }

// removeRange removes a range of the data.
func (s *scanner) removeRange(start, end int) {
	if n := len(s.removedRanges); n > 0 && s.removedRanges[n-1].end == start {
		s.removedRanges[n-1].end = end
		return
	}
	s.removedRanges = append(s.removedRanges, byteRange{start, end})
}

// pruneMembers scans the value at i and cuts the fields that node selects.
func (s *scanner) pruneMembers(i, depth int, node *pruneNode) int {
	if i < len(s.data) {
		switch {
		case s.data[i] == '{' && node.appliesToMaps():
			return s.scanObject(i, depth, otherObject, node)
		case s.data[i] == '[' && node.each != nil:
			return s.pruneList(i, depth, node.each)
		}
	}
	return s.skip(i, depth)
}

// objectRole selects the members of an object that are not ordinary fields.
type objectRole uint8

const (
	rootObject objectRole = iota
	metadataObject
	otherObject
)

// scanObject scans the object at i, cuts the fields that node selects, and returns the offset after it.
func (s *scanner) scanObject(i, depth int, role objectRole, node *pruneNode) int {
	m := memberCutter{scanner: s, depth: depth}
	i, closed := m.firstMember(i)
	for !closed {
		if i < 0 {
			return -1
		}
		start := i
		key, value := m.scanKey(i)
		if value < 0 {
			return -1
		}
		switch role {
		case rootObject:
			i = m.scanRootMember(start, value, key, node)
		case metadataObject:
			i = m.scanMetadataMember(start, value, key, node)
		default:
			i = m.scanMember(start, value, key, node)
		}
		if i < 0 {
			return -1
		}
		i, closed = m.nextMember(i)
	}
	return i
}

// scanMember scans the value of a key and cuts it, entirely or in part.
func (m *memberCutter) scanMember(start, value int, key []byte, node *pruneNode) int {
	child, found := node.memberChild(key)
	if found && child == nil {
		end := m.skip(value, m.depth+1)
		if end >= 0 {
			m.drop(start, end)
		}
		return end
	}
	m.markKeptStart(start)
	var end int
	if found {
		end = m.pruneMembers(value, m.depth+1, child)
	} else {
		end = m.skip(value, m.depth+1)
	}
	m.markKeptEnd(end)
	return end
}

func (s *scanner) pruneList(i, depth int, each *pruneNode) int {
	if depth >= maxDepth {
		return s.failUnsupported()
	}
	i, closed := jsontext.EnterContainer(s.data, i)
	for !closed {
		if i = s.pruneMembers(i, depth+1, each); i < 0 {
			return -1
		}
		if i, closed = jsontext.NextMember(s.data, i, ']'); i < 0 {
			return s.fail(^i)
		}
	}
	return i
}
