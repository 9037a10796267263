package indexers

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/indexers/internal/config"
)

// Code identifies a kind of finding; docs/config.md lists them. Codes with E are errors, codes with W are
// warnings. The meaning of a code never changes. E1xx and W1xx belong to the path language.
type Code string

// Diagnostic is one finding about a config: its cause, its position and a remedy.
type Diagnostic struct {
	// File is the name of the source as given.
	File string
	// Line and Column count from 1; columns are characters, not bytes.
	Line, Column int
	// Length is the number of affected characters, at least 1.
	Length int
	Code   Code
	// Message describes the problem in one clause.
	Message string
	// Hint is the remedy.
	Hint string
	// Source is the line of the file without its end; empty if the file cannot be read.
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

// Text returns String, the line of the file, and a caret below the position, without a final newline. A long
// line is cut around the position, and control characters are replaced. Without a line, Text equals
// String.
func (d Diagnostic) Text() string {
	if strings.TrimSpace(d.Source) == "" {
		return d.String()
	}
	e := d.excerpt()
	return d.String() + "\n  " + e.text + "\n  " + strings.Repeat(" ", e.before) + "^" +
		strings.Repeat("~", e.length-1)
}

// ConfigError is the error of [Load], [Parse] and [Config.Check], with all errors in the order of files and
// positions. Get it with errors.As.
type ConfigError struct {
	// Diagnostics holds at least one finding, and no warnings.
	Diagnostics []Diagnostic
	// Warnings are the findings that are not errors.
	Warnings []Diagnostic
}

// Error returns the [Diagnostic.Text] of each finding, a newline between them.
func (e *ConfigError) Error() string {
	texts := make([]string, len(e.Diagnostics))
	for i, d := range e.Diagnostics {
		texts[i] = d.Text()
	}
	return strings.Join(texts, "\n")
}
