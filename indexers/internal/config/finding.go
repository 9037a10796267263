package config

// Finding is what is wrong or doubtful about a config, where, and the way out. Lines, columns and lengths count from
// 1, in characters.
type Finding struct {
	File                 string
	Line, Column, Length int
	Code                 Code
	Message, Hint        string
	// Source is the line of the file, without its end.
	Source string

	order int // of the file
}

// IsWarning reports whether the finding does not refuse a config.
func (f Finding) IsWarning() bool { return f.Code != "" && f.Code[0] == 'W' }

// Place is where the finding is.
func (f Finding) Place() Place { return Place{f.Line, f.Column, f.Length} }
