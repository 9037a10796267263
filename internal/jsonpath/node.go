package jsonpath

// node is a value under evaluation: a decoded Go value or a value in a scanned document. One evaluator
// handles both. Only the methods of node depend on the form of the value.
type node struct {
	v any   // set if t is nil
	t *tape // the scanned document
	i int32 // index of the value in t
}

// field returns the member with a name. The last of duplicate members counts, as in sigs.k8s.io/json.
func (n node) field(name string) (node, bool) {
	if n.t == nil {
		m, ok := n.v.(map[string]any)
		if !ok {
			return node{}, false
		}
		v, ok := m[name]
		return node{v: v}, ok
	}
	e := &n.t.entries[n.i]
	if e.kind != KindObject {
		return node{}, false
	}
	found := int32(-1)
	for c := n.i + 1; c < e.nextSibling; c = n.t.entries[c].nextSibling {
		if n.t.keyIs(c, name) {
			found = c
		}
	}
	return node{t: n.t, i: found}, found >= 0
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
	if n.t == nil {
		return node{v: n.v.([]any)[index]}, true
	}
	c := n.i + 1
	for ; index > 0; index-- {
		c = n.t.entries[c].nextSibling
	}
	return node{t: n.t, i: c}, true
}

// length returns the number of elements of a list, and 0 for other values.
func (n node) length() int {
	if n.t == nil {
		s, _ := n.v.([]any)
		return len(s)
	}
	return int(n.t.entries[n.i].elements)
}

func (n node) kind() Kind {
	if n.t != nil {
		return n.t.entries[n.i].kind
	}
	switch n.v.(type) {
	case nil:
		return KindNull
	case map[string]any:
		return KindObject
	case []any:
		return KindArray
	}
	return scalarOf(n.v).kind
}

// elements iterates over the elements of a list; it is empty for other values.
func (n node) elements() cursor {
	if n.t == nil {
		s, _ := n.v.([]any)
		return cursor{list: s}
	}
	e := &n.t.entries[n.i]
	if e.kind != KindArray {
		return cursor{t: n.t}
	}
	return cursor{t: n.t, i: n.i + 1, end: e.nextSibling}
}

type cursor struct {
	list   []any
	t      *tape
	i, end int32
}

func (c *cursor) next() (node, bool) {
	if c.t == nil {
		if len(c.list) == 0 {
			return node{}, false
		}
		n := node{v: c.list[0]}
		c.list = c.list[1:]
		return n, true
	}
	if c.i >= c.end {
		return node{}, false
	}
	n := node{t: c.t, i: c.i}
	c.i = c.t.entries[c.i].nextSibling
	return n, true
}

func (n node) equalsString(text string) bool {
	if n.t == nil {
		s, ok := n.v.(string)
		return ok && s == text
	}
	e := &n.t.entries[n.i]
	return e.kind == KindString && string(unquoted(n.t.raw[e.start:e.end], e.flags&encodedValue != 0)) == text
}

// scalar converts a null, bool, number or string. For other values it sets only the kind.
func (n node) scalar() scalar {
	if n.t != nil {
		return n.t.scalar(n.i)
	}
	return scalarOf(n.v)
}
