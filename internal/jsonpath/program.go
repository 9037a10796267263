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

// branchOp is one selector with its continuation.
type branchOp struct {
	kind  SelectorKind
	name  string
	index int
	slice Slice
	cond  *condition
	next  *instruction
}

func compile(steps []Step) (program *instruction) {
	for i := len(steps) - 1; i >= 0; i-- {
		program = compileStep(steps[i], program)
	}
	return program
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
		branch := branchOp{kind: sel.Kind, name: sel.Name, index: sel.Index, slice: sel.Slice, next: next}
		if sel.Filter != nil {
			branch.cond = sel.Filter.cond
		}
		o.sels = append(o.sels, branch)
	}
	return o
}
