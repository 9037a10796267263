package packed

import "github.com/crdcache/crdcache/internal/jsontext"

// members reads the members of an object one after the other.
type members struct {
	*scanner
	depth int
	// gone is where the members begin that were cut before the first one that stays, or -1.
	gone int
	// end is where the last member that stays ends, and what was cut after it; 0: none stays so far.
	end int
}

// first takes the brace at i and returns where the first member begins, or closed.
func (m *members) first(i int) (start int, closed bool) {
	if m.depth >= maxDepth {
		return m.unusual(), false
	}
	m.gone = -1
	return jsontext.First(m.data, i)
}

// next takes what follows the member that ends at i and returns where the next one begins, or closed.
func (m *members) next(i int) (start int, closed bool) {
	if i, closed = jsontext.Next(m.data, i, '}'); i < 0 {
		return m.fail(^i), false
	}
	if closed && m.gone >= 0 {
		m.cut(m.gone, i-1)
	}
	return i, closed
}

// key reads the key at i and the colon after it, and returns where the value begins.
func (m *members) key(i int) (key []byte, value int) {
	end, value, encoded := jsontext.Key(m.data, i)
	if value < 0 {
		return nil, m.fail(^value)
	}
	key = m.data[i+1 : end-1]
	if encoded {
		key = jsontext.AppendText(nil, key)
	}
	return key, value
}

// drop leaves out the member from start to end.
func (m *members) drop(start, end int) {
	switch {
	case m.end > 0:
		m.cut(m.end, end)
		m.end = end
	case m.gone < 0:
		m.gone = start
	}
}

// stay notes that the member that ends at end stays. It must be called before anything within is cut, so that
// cuts are in order.
func (m *members) stay(start int) {
	if m.gone >= 0 {
		m.cut(m.gone, start)
		m.gone = -1
	}
}

// stayed notes where a member that stays ends.
func (m *members) stayed(end int) { m.end = end }

// cut leaves out a part of the data.
func (s *scanner) cut(start, end int) {
	if n := len(s.cuts); n > 0 && s.cuts[n-1].end == start {
		s.cuts[n-1].end = end
		return
	}
	s.cuts = append(s.cuts, span{start, end})
}

// prune reads the value at i and cuts what b says.
func (s *scanner) prune(i, depth int, b *branch) int {
	if i < len(s.data) {
		switch {
		case s.data[i] == '{' && (len(b.keys) > 0 || b.allBut != ""):
			return s.pruneObject(i, depth, b)
		case s.data[i] == '[' && b.each != nil:
			return s.pruneList(i, depth, b.each)
		}
	}
	return s.skip(i, depth)
}

func (s *scanner) pruneObject(i, depth int, b *branch) int {
	m := members{scanner: s, depth: depth}
	i, closed := m.first(i)
	for !closed {
		if i < 0 {
			return -1
		}
		start := i
		key, value := m.key(i)
		if value < 0 {
			return -1
		}
		if i = m.member(start, value, key, b); i < 0 {
			return -1
		}
		i, closed = m.next(i)
	}
	return i
}

// member reads the value of a key, and cuts the member or parts of it.
func (m *members) member(start, value int, key []byte, b *branch) int {
	below, found := b.member(key)
	if found && below == nil {
		end := m.skip(value, m.depth+1)
		if end >= 0 {
			m.drop(start, end)
		}
		return end
	}
	m.stay(start)
	var end int
	if found {
		end = m.prune(value, m.depth+1, below)
	} else {
		end = m.skip(value, m.depth+1)
	}
	m.stayed(end)
	return end
}

func (s *scanner) pruneList(i, depth int, each *branch) int {
	if depth >= maxDepth {
		return s.unusual()
	}
	i, closed := jsontext.First(s.data, i)
	for !closed {
		if i = s.prune(i, depth+1, each); i < 0 {
			return -1
		}
		if i, closed = jsontext.Next(s.data, i, ']'); i < 0 {
			return s.fail(^i)
		}
	}
	return i
}
