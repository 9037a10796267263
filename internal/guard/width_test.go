package guard

import (
	"fmt"
	"go/scanner"
	"go/token"
	"strings"
	"testing"
)

// maxColumns is the width of a line of Go. A tab counts as four columns. The text of string literals and of
// the expected output of examples does not count, because it cannot be broken.
const maxColumns = 110

// wideLines returns the numbers of the lines that exceed maxColumns.
func wideLines(source []byte) []int {
	widths := lineWidths(string(source))
	var file token.FileSet
	f := file.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(f, source, nil, scanner.ScanComments)
	output := false
	for {
		pos, tok, literal := s.Scan()
		line := f.Line(pos) - 1
		switch tok {
		case token.EOF:
			return linesOverLimit(widths)
		case token.STRING:
			for i, part := range strings.Split(literal, "\n") {
				widths[line+i] -= countColumns(part)
			}
			output = false
		case token.COMMENT:
			output = output || strings.HasPrefix(literal, "// Output:")
			if output {
				widths[line] = 0
			}
		default:
			output = false
		}
	}
}

func lineWidths(source string) []int {
	var widths []int
	for line := range strings.SplitSeq(source, "\n") {
		widths = append(widths, countColumns(strings.TrimSuffix(line, "\r")))
	}
	return widths
}

func countColumns(text string) int {
	return len([]rune(strings.ReplaceAll(text, "\t", "    ")))
}

// linesOverLimit returns the numbers of the lines with more than maxColumns columns.
func linesOverLimit(widths []int) []int {
	var lines []int
	for i, width := range widths {
		if width > maxColumns {
			lines = append(lines, i+1)
		}
	}
	return lines
}

func TestLinesAreNarrow(t *testing.T) {
	var violations []string
	for _, name := range files(t) {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		for _, line := range wideLines(readFile(t, name)) {
			violations = append(violations, fmt.Sprintf("%s:%d has more than %d columns", name, line, maxColumns))
		}
	}
	reportViolations(t, violations)
}
