package jsonpath

// Expr is an expression of a [Set]: a [*Path] or a [*Filter].
type Expr interface {
	// String returns the canonical form.
	String() string
	// Warnings returns findings about a valid expression.
	Warnings() []Diagnostic

	program() setProgram
}

func (p *Path) program() setProgram   { return setProgram{steps: p.steps} }
func (f *Filter) program() setProgram { return setProgram{cond: f.cond} }

type setProgram struct {
	steps []Step
	cond  *condition // set for a filter, which has no steps
}

// Set evaluates several expressions in one pass over a document. It is immutable and safe for concurrent use.
type Set struct {
	programs      []setProgram
	selectedPaths trie
}

// NewSet combines expressions. FindJSON identifies them by their index.
func NewSet(exprs ...Expr) *Set {
	s := &Set{programs: make([]setProgram, len(exprs))}
	budget := trieBudget
	for i, e := range exprs {
		s.programs[i] = e.program()
		if c := s.programs[i].cond; c != nil {
			s.selectedPaths.addCondition(c, &budget)
		} else {
			s.selectedPaths.add(s.programs[i].steps)
		}
	}
	return s
}

func (s *Set) Len() int { return len(s.programs) }

// FindJSON scans raw once and calls yield for each result, all results of expression 0 first, until yield
// returns false. A filter yields the whole document if it matches. Validation, errors and lifetimes are those
// of [Path.FindJSON].
func (s *Set) FindJSON(raw []byte, yield func(i int, v Value) bool) error {
	ev := evaluator{nextCheck: neverCheck}
	defer ev.release()
	t := &ev.acquireScratch().tape
	if err := t.scan(raw, &s.selectedPaths); err != nil {
		return err
	}
	root := node{tape: t}
	for i := range s.programs {
		p := &s.programs[i]
		if p.cond != nil && !ev.match(root, p.cond) {
			continue
		}
		if !ev.walk(root, p.steps, func(n node) bool { return yield(i, n.tape.value(n.index)) }) {
			break
		}
	}
	return nil
}
