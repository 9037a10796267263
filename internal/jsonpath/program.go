package jsonpath

// instruction is one instruction of a compiled path. A nil op means that the value is a result. Programs are
// immutable; alternatives of a union can share their tails.
type instruction struct {
	kind  opKind
	name  string       // opName
	index int          // opIndex
	sels  []branchOp   // opMany, opRecursive
	next  *instruction // opName, opIndex
}

type opKind uint8

const (
	opName opKind = iota
	opIndex
	opMany
	opRecursive
)

// branchOp is one selector with its own continuation, so that a union of paths of different lengths (kubectl
// dialect) needs no stack.
type branchOp struct {
	kind  SelectorKind // SelectPath continues with the value itself
	name  string
	index int
	slice Slice
	cond  *condition
	next  *instruction
}

func compile(steps []Step) *instruction { return compileBefore(steps, nil) }

// compileBefore compiles steps that continue with next.
func compileBefore(steps []Step, next *instruction) *instruction {
	for i := len(steps) - 1; i >= 0; i-- {
		next = compileStep(steps[i], next)
	}
	return next
}

func compileStep(s Step, next *instruction) *instruction {
	if !s.Recursive && len(s.Selectors) == 1 {
		switch sel := s.Selectors[0]; sel.Kind {
		case SelectName:
			return &instruction{kind: opName, name: sel.Name, next: next}
		case SelectIndex:
			return &instruction{kind: opIndex, index: sel.Index, next: next}
		}
	}
	o := &instruction{kind: opMany}
	if s.Recursive {
		o.kind = opRecursive
	}
	for _, sel := range s.Selectors {
		o.sels = append(o.sels, compileSelector(sel, next))
	}
	return o
}

func compileSelector(sel Selector, next *instruction) branchOp {
	if sel.Kind != SelectPath {
		p := branchOp{kind: sel.Kind, name: sel.Name, index: sel.Index, slice: sel.Slice, next: next}
		if sel.Filter != nil {
			p.cond = sel.Filter.cond
		}
		return p
	}
	first := compileBefore(sel.Path, next)
	switch first.kind {
	case opName:
		return branchOp{kind: SelectName, name: first.name, next: first.next}
	case opIndex:
		return branchOp{kind: SelectIndex, index: first.index, next: first.next}
	}
	return branchOp{kind: SelectPath, next: first}
}
