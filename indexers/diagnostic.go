package indexers

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/indexers/internal/config"
)

// Diagnostic is one finding about a config: what is wrong or doubtful, where, and the way out.
type Diagnostic struct {
	// File is the name of the source, as it was given.
	File string
	// Line and Column count from 1; the column counts characters, not bytes.
	Line, Column int
	// Length is the number of characters concerned, at least 1.
	Length int
	Code   Code
	// Message says what is wrong, in one clause.
	Message string
	// Hint is the way out.
	Hint string
	// Source is the line of the file, without its end. It is empty when the file cannot be read.
	Source string
}

func newDiagnostic(f config.Finding) Diagnostic {
	return Diagnostic{
		File: f.File, Line: f.Line, Column: f.Column, Length: f.Length,
		Code: Code(f.Code), Message: f.Message, Hint: f.Hint, Source: f.Source,
	}
}

// String formats the finding on one line as "file:line:column: CODE: message; hint".
func (d Diagnostic) String() string {
	text := fmt.Sprintf("%s:%d:%d: %s: %s", d.File, d.Line, d.Column, d.Code, d.Message)
	if d.Hint != "" {
		text += "; " + d.Hint
	}
	return text
}

// Text is String followed by the line of the file and a caret below the place, without a final
// newline. Of a long line only what is near the place is shown, and characters that a terminal would act
// on are replaced. A finding without a line is String alone.
func (d Diagnostic) Text() string {
	if strings.TrimSpace(d.Source) == "" {
		return d.String()
	}
	e := d.excerpt()
	return d.String() + "\n  " + e.text + "\n  " + strings.Repeat(" ", e.before) + "^" +
		strings.Repeat("~", e.length-1)
}

// ConfigError is what [Load], [Parse] and [Config.Check] return: everything that is wrong, in the
// order of the files and of the places in them. Use errors.As to get at it.
type ConfigError struct {
	// Diagnostics holds at least one finding, and no warnings.
	Diagnostics []Diagnostic
	// Warnings are what is doubtful besides.
	Warnings []Diagnostic
}

// Error gives each finding as [Diagnostic.Text] does, one after the other.
func (e *ConfigError) Error() string {
	texts := make([]string, len(e.Diagnostics))
	for i, d := range e.Diagnostics {
		texts[i] = d.Text()
	}
	return strings.Join(texts, "\n")
}
