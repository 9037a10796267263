package manifest

import "fmt"

// Problem is an error or a warning about a file.
type Problem struct {
	// File is the path, or "stdin".
	File string
	Position
	// Warning is true if a guess was made or something was ignored, but nothing is lost.
	Warning bool
	Err     error
}

// Error returns the position and the error.
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

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }
