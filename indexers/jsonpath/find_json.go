package jsonpath

import "context"

// FindJSON calls yield for each value the path leads to in the JSON document raw, in order, until
// yield returns false. The results are those of [Path.Find] on the decoded document.
//
// The whole document is checked before the first result, because a duplicate key may come late: the
// last one counts. A document that is not valid JSON gives a [*SyntaxError] and no results.
// Documents are limited to 2 GiB and a nesting of 10000.
//
// The values refer to raw. Paths of keys, indexes and [*] allocate nothing. To look for several
// paths use a [Set], which scans the document once.
func (p *Path) FindJSON(raw []byte, yield func(v Value) bool) error {
	return p.FindJSONContext(context.Background(), raw, yield)
}

// FindJSONContext is [Path.FindJSON] that ends early, with the cause, once the context has ended.
func (p *Path) FindJSONContext(ctx context.Context, raw []byte, yield func(v Value) bool) error {
	ev := evaluator{ctx: ctx}
	defer ev.release()
	t := &ev.space().tape
	if err := t.scan(raw, &p.wanted); err != nil {
		return err
	}
	ev.walk(node{t: t}, p.prog, func(n node) bool { return yield(n.t.value(n.i)) })
	return ev.err
}

// AppendJSON appends the values the path leads to in raw; see [Path.FindJSON]. With an error dst is
// returned unchanged.
func (p *Path) AppendJSON(dst []Value, raw []byte) ([]Value, error) {
	err := p.FindJSON(raw, func(v Value) bool {
		dst = append(dst, v)
		return true
	})
	return dst, err
}

// FirstJSON gives the first value the path leads to in raw, and whether there is one; see
// [Path.FindJSON].
func (p *Path) FirstJSON(raw []byte) (v Value, ok bool, err error) {
	err = p.FindJSON(raw, func(found Value) bool {
		v, ok = found, true
		return false
	})
	return v, ok, err
}
