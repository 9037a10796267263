package jsonpath

// node is a value under evaluation: a decoded Go value or a value in a scanned document. One evaluator
// handles both. Only the methods of node depend on the form of the value.
type node struct {
	value any   // set if tape is nil
	tape  *tape // the scanned document
	index int32 // index of the value in tape
}

// field returns the member with a name. The last of duplicate members counts, as in sigs.k8s.io/json.
func (n node) field(name string) (node, bool) {
	if n.tape == nil {
		m, ok := n.value.(map[string]any)
		if !ok {
			return node{}, false
		}
		v, ok := m[name]
		return node{value: v}, ok
	}
	e := &n.tape.entries[n.index]
	if e.kind != KindObject {
		return node{}, false
	}
	found := int32(-1)
	for c := n.index + 1; c < e.nextSibling; c = n.tape.entries[c].nextSibling {
		if n.tape.keyIs(c, name) {
			found = c
		}
	}
	return node{tape: n.tape, index: found}, found >= 0
}

// element returns the element at an index; a negative index counts from the end.
func (n node) element(index int) (node, bool) {
	length := n.length()
	if index < 0 {
		index += length
	}
	if index < 0 || index >= length {
		return node{}, false
	}
	if n.tape == nil {
		return node{value: n.value.([]any)[index]}, true
	}
	c := n.index + 1
	for ; index > 0; index-- {
		c = n.tape.entries[c].nextSibling
	}
	return node{tape: n.tape, index: c}, true
}

// length returns the number of elements of a list, and 0 for other values.
func (n node) length() int {
	if n.tape == nil {
		s, _ := n.value.([]any)
		return len(s)
	}
	return int(n.tape.entries[n.index].elements)
}

func (n node) kind() Kind {
	if n.tape != nil {
		return n.tape.entries[n.index].kind
	}
	return scalarOf(n.value).kind
}

// elements iterates over the elements of a list; it is empty for other values.
func (n node) elements() cursor {
	if n.tape == nil {
		s, _ := n.value.([]any)
		return cursor{list: s}
	}
	e := &n.tape.entries[n.index]
	if e.kind != KindArray {
		return cursor{tape: n.tape}
	}
	return cursor{tape: n.tape, index: n.index + 1, end: e.nextSibling}
}

type cursor struct {
	list       []any
	tape       *tape
	index, end int32
}

func (c *cursor) next() (node, bool) {
	if c.tape == nil {
		if len(c.list) == 0 {
			return node{}, false
		}
		n := node{value: c.list[0]}
		c.list = c.list[1:]
		return n, true
	}
	if c.index >= c.end {
		return node{}, false
	}
	n := node{tape: c.tape, index: c.index}
	c.index = c.tape.entries[c.index].nextSibling
	return n, true
}

func (n node) equalsString(text string) bool {
	if n.tape == nil {
		s, ok := n.value.(string)
		return ok && s == text
	}
	e := &n.tape.entries[n.index]
	return e.kind == KindString &&
		string(unquote(n.tape.raw[e.start:e.end], e.flags&encodedValue != 0)) == text
}

// scalar converts a null, bool, number or string. For other values it sets only the kind.
func (n node) scalar() scalar {
	if n.tape != nil {
		return n.tape.scalar(n.index)
	}
	return scalarOf(n.value)
}
