package jsonpath

// fastPath evaluates paths of a common form on decoded objects: names, then [*] or a filter, then names. Its
// results equal those of the path's program. It does little between map lookups, so that the CPU can overlap
// the memory latency of consecutive lookups.
type fastPath struct {
	namesBefore []string
	filter      predicate
	namesAfter  []string
}

// predicate is a condition that needs no scratch space.
type predicate struct {
	// equals is set for the most common condition: the value at a path equals a string. names is the path,
	// empty for the value itself, and text is the string.
	equals bool
	names  []string
	text   string

	cond *condition // any other condition; nil matches everything
}

// newFastPath returns the fast path of steps, or nil if they have another form.
func newFastPath(steps []Step) *fastPath {
	d := &fastPath{}
	if d.namesBefore, steps = leadingNames(steps); len(steps) == 0 || steps[0].Recursive ||
		len(steps[0].Selectors) != 1 {
		return nil
	}
	s := &steps[0].Selectors[0]
	c := s.condition()
	if s.Kind != SelectElements && s.Kind != SelectFilter || c != nil && !c.isSingular() {
		return nil
	}
	d.filter = newPredicate(c)
	if d.namesAfter, steps = leadingNames(steps[1:]); len(steps) > 0 {
		return nil
	}
	return d
}

// leadingNames returns the names of the leading steps, and the remaining steps.
func leadingNames(steps []Step) (names []string, rest []Step) {
	for ; len(steps) > 0; steps = steps[1:] {
		s := steps[0].singularSelector()
		if s == nil || s.Kind != SelectName {
			break
		}
		names = append(names, s.Name)
	}
	return names, steps
}

func newPredicate(c *condition) predicate {
	if c != nil && c.kind == condCompare && c.op == opEqual && c.left.isPath && !c.right.isPath &&
		c.right.literal.kind == KindString {
		if names, rest := leadingNames(c.left.steps); len(rest) == 0 {
			return predicate{names: names, text: c.right.literal.text, equals: true}
		}
	}
	return predicate{cond: c}
}

// isSingular reports whether all paths in the condition are singular, so that they need no scratch space.
func (c *condition) isSingular() bool {
	for _, o := range c.operands(nil) {
		if !isSingular(o.steps) {
			return false
		}
	}
	return true
}

func (t *predicate) matches(v any) bool {
	if t.equals {
		v, _ := lookUp(v, t.names)
		s, ok := v.(string)
		return ok && s == t.text
	}
	ev := evaluator{nextCheck: neverCheck}
	return t.cond == nil || ev.match(node{value: v}, t.cond)
}

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

// find calls yield for each result until yield returns false. It returns false without a call if a filter
// would be applied to a map, because its values have to be sorted first.
func (d *fastPath) find(v any, yield func(v any) bool) bool {
	v, ok := lookUp(v, d.namesBefore)
	if !ok {
		return true
	}
	list, ok := v.([]any)
	if !ok {
		return d.filter.matchesAll()
	}
	for _, e := range list {
		if !d.filter.matches(e) {
			continue
		}
		if e, ok = lookUp(e, d.namesAfter); ok && !yield(e) {
			break
		}
	}
	return true
}

func (t *predicate) matchesAll() bool { return !t.equals && t.cond == nil }
