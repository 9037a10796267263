package jsonpath

// Expr is what a [Set] evaluates: a [*Path] or a [*Filter].
type Expr interface {
	// String gives the canonical form.
	String() string
	// Warnings gives what may not be what was meant.
	Warnings() []Diagnostic

	program() setProgram
}

func (p *Path) program() setProgram   { return setProgram{prog: p.prog} }
func (f *Filter) program() setProgram { return setProgram{cond: f.cond} }

type setProgram struct {
	prog *op
	cond *condition // of a filter, else nil
}

// Set evaluates several expressions over one document in one pass. It never changes and may be used
// from any number of goroutines.
type Set struct {
	programs []setProgram
	wanted   trie
}

// NewSet combines expressions. Their order gives the indexes that FindJSON reports.
func NewSet(exprs ...Expr) *Set {
	s := &Set{programs: make([]setProgram, len(exprs))}
	budget := trieBudget
	for i, e := range exprs {
		s.programs[i] = e.program()
		if c := s.programs[i].cond; c != nil {
			s.wanted.addCondition(c, &budget)
		} else {
			s.wanted.add(s.programs[i].prog)
		}
	}
	return s
}

// Len gives the number of expressions.
func (s *Set) Len() int { return len(s.programs) }

// FindJSON scans raw once and calls yield for each result of each expression: first all of
// expression 0 in order, then those of 1, and so on, until yield returns false. A path gives the
// values it leads to; a filter gives the whole document when it holds, and else nothing. What
// [Path.FindJSON] says of checking, errors and lifetimes applies here too.
func (s *Set) FindJSON(raw []byte, yield func(i int, v Value) bool) error {
	ev := evaluator{check: never}
	defer ev.release()
	t := &ev.space().tape
	if err := t.scan(raw, &s.wanted); err != nil {
		return err
	}
	root := node{t: t}
	for i := range s.programs {
		p := &s.programs[i]
		if p.cond != nil && !ev.test(root, p.cond) {
			continue
		}
		if !ev.walk(root, p.prog, func(n node) bool { return yield(i, n.t.value(n.i)) }) {
			break
		}
	}
	return nil
}
