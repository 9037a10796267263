package jsonpath

// direct evaluates paths of a common form over decoded objects: names, then [*] or a filter, then
// names. It gives what the program of the path gives. What it saves is all that is not a look-up in a
// map: look-ups wait for memory, and the less there is between them, the more of the next one the
// processor begins meanwhile.
type direct struct {
	before []string
	where  test
	after  []string
}

// test is a condition that needs no scratch space.
type test struct {
	// Of nearly all conditions, which compare a text: the names that lead to it. It may be empty, for
	// the value itself; so equals says whether this is the form.
	names  []string
	text   string
	equals bool

	cond *condition // of the others; nil if there is no condition
}

// newDirect gives nil for paths of other forms.
func newDirect(o *op) *direct {
	d := &direct{}
	if d.before, o = leadingNames(o); o == nil || o.kind != opMany || len(o.sels) != 1 {
		return nil
	}
	p := &o.sels[0]
	if p.kind != SelectElements && p.kind != SelectFilter || p.cond != nil && !p.cond.flat() {
		return nil
	}
	d.where = newTest(p.cond)
	d.after, o = leadingNames(p.next)
	if o != nil {
		return nil
	}
	return d
}

// leadingNames gives the names a program begins with, and the rest of it.
func leadingNames(o *op) (names []string, rest *op) {
	for ; o != nil && o.kind == opName; o = o.next {
		names = append(names, o.name)
	}
	return names, o
}

func newTest(c *condition) test {
	if c != nil && c.kind == condCompare && c.op == opEqual && c.left.isPath && !c.right.isPath &&
		c.right.lit.kind == KindString {
		if names, rest := leadingNames(c.left.prog); rest == nil {
			return test{names: names, text: c.right.lit.s, equals: true}
		}
	}
	return test{cond: c}
}

// flat tells whether all paths in the condition are singular, so that they need no scratch space.
func (c *condition) flat() bool {
	for _, o := range c.operands(nil) {
		if !singular(o.steps) {
			return false
		}
	}
	return true
}

func (t *test) holds(v any) bool {
	if t.equals {
		v, _ := lookUp(v, t.names)
		s, ok := v.(string)
		return ok && s == t.text
	}
	ev := evaluator{check: never}
	return t.cond == nil || ev.test(node{v: v}, t.cond)
}

// lookUp follows names.
func lookUp(v any, names []string) (any, bool) {
	for _, name := range names {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[name]; !ok {
			return nil, false
		}
	}
	return v, true
}

// find calls yield for each result until yield returns false. It gives false, without a call, where a
// filter meets a map, whose values have to be put in order first.
func (d *direct) find(v any, yield func(v any) bool) bool {
	v, ok := lookUp(v, d.before)
	if !ok {
		return true
	}
	list, ok := v.([]any)
	if !ok {
		return !d.where.filters()
	}
	for _, e := range list {
		if !d.where.holds(e) {
			continue
		}
		if e, ok = lookUp(e, d.after); ok && !yield(e) {
			break
		}
	}
	return true
}

// filters tells whether there is a condition.
func (t *test) filters() bool { return t.equals || t.cond != nil }
