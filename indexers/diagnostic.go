package indexers

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/crdcache/crdcache/internal/naming"
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

	fileNumber int // number of the file in the config
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
// line is cut around the position, and control characters are replaced. Without a line, Text equals String.
func (d Diagnostic) Text() string {
	if strings.TrimSpace(d.Source) == "" {
		return d.String()
	}
	e := d.excerpt()
	return d.String() + "\n  " + e.text + "\n  " + strings.Repeat(" ", e.offset) + "^" +
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
	return strings.Join(naming.Texts(e.Diagnostics, Diagnostic.Text), "\n")
}

// isWarning reports whether the finding is a warning, not an error.
func (d Diagnostic) isWarning() bool { return d.Code != "" && d.Code[0] == 'W' }

func (d Diagnostic) position() position { return position{d.Line, d.Column, d.Length} }

// Errors; see docs/config.md.
const (
	codeUnknownField  = "E001" // a field that does not exist
	codeDuplicateKey  = "E002" // the same field twice in one map
	codeWrongType     = "E003" // wrong YAML type, such as a list instead of text
	codeRequired      = "E004" // a missing field
	codeEmpty         = "E005" // an empty text or list
	codeUnknownValue  = "E006" // not an allowed value of the field
	codeDuplicateName = "E007" // a name that is already used
	codeContradict    = "E008" // fields that exclude each other
	codeYAML          = "E009" // not YAML
	codeOtherKind     = "E011" // another apiVersion or kind
	codeOutOfRange    = "E012" // a number out of range
	codeAlias         = "E013" // YAML aliases and merge keys
	codeRegex         = "E014" // a regular expression that does not compile
	codeName          = "E015" // a name with invalid characters
	codeMultiValued   = "E016" // several multi-valued keys in one index
	codeFile          = "E017" // a file that cannot be read
	codeValue         = "E018" // a value that does not have the type of the index
	codeSelector      = "E019" // not a label or field selector
	codeImpossible    = "E020" // a name or a path that no object can have
	codeCEL           = "E021" // a CEL expression that does not compile

	codePrunedFieldIndexed = "W001" // an index over a pruned field, which is therefore stored
)

// Findings of the comparison with CustomResourceDefinitions.
const (
	codeNotInSchema  = "E301" // a field that the schema does not have
	codeContainer    = "E302" // a list read as a map, or a map as a list
	codeScalar       = "E303" // a field below a text, a number or a boolean
	codeNoResource   = "E304" // a resource that no CRD defines
	codeNoVersion    = "E305" // a version that the CRD does not serve
	codeNotIndexable = "E306" // the path ends at a list or a map
	codeTypeMismatch = "E307" // a type that no value at the path has
	codeUnselectable = "E308" // a field selector over a field that the server cannot select by
	codeNoNamespace  = "E309" // a reference without namespace to a namespaced type
	codeCELSchema    = "E310" // a CEL expression that the schema does not permit
	codeDropped      = "E311" // a selectable field that the cache does not store

	codeOpenField          = "W301" // a field that the schema leaves open
	codeNoSchema           = "W302" // a version without a schema
	codeBuiltIn            = "W303" // a type built into Kubernetes
	codeOptionalMissing    = "W304" // an optional resource that no CRD defines
	codeTextOrder          = "W305" // numbers ordered as text
	codeTypePartly         = "W306" // a type that only some values at the path have
	codeLiteral            = "W307" // a comparison that is true for all values at the path, or for none
	codeExistence          = "W308" // a condition that tests whether a boolean exists instead of its value
	codeTextQuantity       = "W309" // quantities compared as text
	codeFieldNotInAllTypes = "W310" // a field that some of the types matched by a pattern lack
	codeNoTarget           = "W311" // a reference to a type that no CRD defines
	codeManySeries         = "W312" // a metric of too many series, or an unbounded label
)

const (
	// maxExcerptLength is the maximum number of characters shown of a line: with the indentation, two lines
	// of a terminal.
	maxExcerptLength = 158
	// excerptBefore is the number of characters shown before the position in a long line. Near the end of the
	// line, more are shown.
	excerptBefore = 60
	ellipsis      = "…"
)

// excerpt is the shown part of a line.
type excerpt struct {
	text string
	// offset and length are the number of shown characters before and at the position. length is at least 1.
	offset, length int
}

// excerpt cuts long lines, so that a finding does not repeat megabytes of JSON.
func (d Diagnostic) excerpt() excerpt {
	characters := utf8.RuneCountInString(d.Source)
	first := 0 // index of the first shown character
	if characters > maxExcerptLength {
		first = min(max(d.Column-1-excerptBefore, 0), characters-maxExcerptLength)
	}
	last := min(first+maxExcerptLength, characters)
	var b strings.Builder
	if first > 0 {
		b.WriteString(ellipsis)
	}
	n := 0
	for _, r := range d.Source {
		if n >= last {
			break
		}
		if n >= first {
			b.WriteRune(replaceControl(r))
		}
		n++
	}
	if last < characters {
		b.WriteString(ellipsis)
	}
	e := excerpt{text: b.String(), offset: max(d.Column-1-first, 0)}
	if first > 0 {
		e.offset += utf8.RuneCountInString(ellipsis)
	}
	e.length = max(min(d.Length, last-d.Column+1), 1)
	return e
}

// replaceControl replaces control characters, which would move the caret or change the terminal.
func replaceControl(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case !unicode.IsPrint(r) && !unicode.Is(unicode.Co, r):
		return unicode.ReplacementChar
	}
	return r
}
