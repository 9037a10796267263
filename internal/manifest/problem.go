package manifest

import "fmt"

// Problem is something in the files that is not as it should be.
type Problem struct {
	// File is the path, or "stdin".
	File string
	Place
	// Warning is true when nothing is lost but a guess was made or something was passed over.
	Warning bool
	Err     error
}

// Error says where, then what.
func (p *Problem) Error() string {
	where := p.File
	if p.Line > 0 {
		where += fmt.Sprintf(":%d", p.Line)
	}
	if p.Document > 0 {
		where += fmt.Sprintf(": document %d", p.Document)
	}
	if p.Item > 0 {
		where += fmt.Sprintf(", item %d", p.Item)
	}
	return fmt.Sprintf("%s: %v", where, p.Err)
}

// Unwrap returns what is wrong.
func (p *Problem) Unwrap() error { return p.Err }
