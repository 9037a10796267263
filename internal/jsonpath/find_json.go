package jsonpath

import "context"

// FindJSON calls yield for each result in a JSON document, in order, until yield returns false. The results
// equal the results of [Path.Find] on the decoded document.
//
// The whole document is checked before the first result, because the last of duplicate keys counts. Invalid
// JSON gives a [*SyntaxError] and no results. Documents are limited to 2 GiB and a nesting of 10000.
//
// Values reference raw. Paths of keys, indexes and [*] allocate nothing. Use a [Set] to evaluate several
// paths in one scan.
func (p *Path) FindJSON(raw []byte, yield func(v Value) bool) error {
	return p.FindJSONContext(context.Background(), raw, yield)
}

// FindJSONContext is [Path.FindJSON], but returns the cause when the context ends.
func (p *Path) FindJSONContext(ctx context.Context, raw []byte, yield func(v Value) bool) error {
	ev := evaluator{ctx: ctx}
	defer ev.release()
	t := &ev.acquireScratch().tape
	if err := t.scan(raw, &p.selection); err != nil {
		return err
	}
	ev.walk(node{t: t}, p.prog, func(n node) bool { return yield(n.t.value(n.i)) })
	return ev.err
}

// FirstJSON returns the first result in raw, and whether there is one; see [Path.FindJSON].
func (p *Path) FirstJSON(raw []byte) (v Value, ok bool, err error) {
	err = p.FindJSON(raw, func(found Value) bool {
		v, ok = found, true
		return false
	})
	return v, ok, err
}
