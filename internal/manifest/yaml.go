package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// readYAML reads one document. It returns false at the end of the text, or if yield returned false.
func (t *documentReader) readYAML() (more bool, err error) {
	t.document++
	text, firstLine, more, err := t.documentText()
	if err != nil {
		return false, err
	}
	l := &list{Position: Position{Line: contentLine(text, firstLine), Document: t.document}, yield: t.yield}
	data, err := decodeYAML(text, firstLine)
	switch {
	case err != nil:
		return t.yield(Entry{Position: Position{Line: lineOf(err, l.Line), Document: t.document},
			Err: err}) && more, nil
	case string(data) == "null":
		return more, nil
	}
	return l.addDecoded(data, func() []int { return itemLines(text, firstLine) }) && more, nil
}

var directivePattern = regexp.MustCompile(`^%(YAML|TAG)\s`)

// documentText returns the text of a document and the line at which it begins. more is false at the end of
// the text.
func (t *documentReader) documentText() (text []byte, firstLine int, more bool, err error) {
	firstLine = t.line
	for hasContent := false; ; {
		line, err := t.readLine()
		if errors.Is(err, io.EOF) {
			return text, firstLine, false, nil
		} else if err != nil {
			return nil, 0, false, err
		}
		switch separator := isSeparator(line); {
		case separator && hasContent:
			if !isBareSeparator(line) { // as in "--- {a: b}"
				t.unreadLine(line)
			}
			return text, firstLine, true, nil
		case separator:
			text = text[:0]
			if firstLine = t.line; isBareSeparator(line) {
				continue
			}
			firstLine--
		case !hasContent && directivePattern.Match(line):
			line = newline
		}
		hasContent = hasContent || len(bytes.TrimSpace(line)) > 0
		if text = append(text, line...); len(text) > MaxDocument {
			return nil, 0, false, ErrTooLarge
		}
	}
}

func itemLines(text []byte, firstLine int) (lines []int) {
	var document yamlv3.Node
	if yamlv3.Unmarshal(text, &document) != nil || document.Kind != yamlv3.DocumentNode {
		return nil
	}
	fields := document.Content[0].Content
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i].Value == "items" {
			for _, item := range fields[i+1].Content {
				lines = append(lines, firstLine+item.Line-1)
			}
		}
	}
	return lines
}

// isBareSeparator reports whether a separator has no document on its line.
func isBareSeparator(line []byte) bool {
	return bytes.HasPrefix(line, []byte("...")) || isBlank(line[len("---"):])
}

// isSeparator reports whether a line ends a document. YAML forbids such lines in scalars.
func isSeparator(line []byte) bool {
	if after, ok := bytes.CutPrefix(line, []byte("---")); ok {
		return len(after) == 0 || strings.IndexByte(" \t\r\n#", after[0]) >= 0 // kubectl accepts "---#"
	}
	after, ok := bytes.CutPrefix(line, []byte("..."))
	return ok && (len(after) == 0 || strings.IndexByte(" \t\r\n", after[0]) >= 0) && isBlank(after)
}

// isBlank reports whether a text is empty or a comment.
func isBlank(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) == 0 || text[0] == '#'
}

// contentLine returns the number of the first line that is neither blank nor a comment.
func contentLine(text []byte, firstLine int) int {
	n := firstLine
	for line := range bytes.Lines(text) {
		if !isBlank(line) {
			return n
		}
		n++
	}
	return firstLine
}

type yamlError struct {
	line int
	text string
}

func (e *yamlError) Error() string { return e.text }

func lineOf(err error, fallback int) int {
	var yamlErr *yamlError
	if errors.As(err, &yamlErr) && yamlErr.line > 0 {
		return yamlErr.line
	}
	return fallback
}

var (
	yamlLinePattern = regexp.MustCompile(`(?s)^.*?line (\d+): (.*)$`)
	// foreignLineBreak matches a separator after a line break that YAML recognizes and readLine does not. The
	// library would ignore the document after it.
	foreignLineBreak = regexp.MustCompile(`(?:\r|\xc2\x85|\xe2\x80[\xa8\xa9])(?:---|\.\.\.)` +
		`(?:[ \t\r\n]|\xc2\x85|\xe2\x80[\xa8\xa9]|$)|(?m:^)(?:---|\.\.\.)(?:\xc2\x85|\xe2\x80[\xa8\xa9])`)
	errForeignLineBreak = errors.New("not valid YAML here: line breaks other than \\n separate documents; convert the line ends")
)

// decodeYAML returns the JSON of a text that begins at firstLine of a file. Duplicate keys are an error.
func decodeYAML(text []byte, firstLine int) ([]byte, error) {
	if bytes.ContainsAny(text, "\r\u0085\u2028\u2029") && foreignLineBreak.Match(text) {
		return nil, errForeignLineBreak
	}
	err := checkAliases(text)
	if err == nil {
		var data []byte
		if data, err = yaml.YAMLToJSONStrict(text); err == nil {
			return data, nil
		}
	}
	var lineErr *yamlError
	if errors.As(err, &lineErr) {
		return nil, err
	}
	if parts := yamlLinePattern.FindStringSubmatch(err.Error()); parts != nil {
		line, _ := strconv.Atoi(parts[1]) // digits
		return nil, &yamlError{firstLine + line - 1, "not valid YAML: " + parts[2]}
	}
	return nil, &yamlError{0, "not valid YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
}

const (
	// maxExpansion is the factor by which aliases may enlarge a document, beyond freeExpansion.
	maxExpansion  = 10
	freeExpansion = 64 << 10
)

// checkAliases returns an error if aliases enlarge a text too much. The YAML library limits the number of
// nodes, but few nodes can contain much text.
func checkAliases(text []byte) error {
	if bytes.IndexByte(text, '&') < 0 || bytes.IndexByte(text, '*') < 0 {
		return nil
	}
	var node yamlv3.Node
	if err := yamlv3.Unmarshal(text, &node); err != nil {
		return err // the grammar is the same as the decoder's
	}
	limit := maxExpansion*len(text) + freeExpansion
	if (expansion{limit, map[*yamlv3.Node]int{}}).measure(&node) <= limit {
		return nil
	}
	return &yamlError{text: fmt.Sprintf("aliases make the document more than %d times as large as its %d bytes",
		maxExpansion, len(text))}
}

// expansion computes the size of nodes with their aliases expanded.
type expansion struct {
	limit   int
	anchors map[*yamlv3.Node]int // sizes; over the limit while they are measured
}

func (e expansion) measure(node *yamlv3.Node) int {
	if node.Kind == yamlv3.AliasNode && node.Alias != nil {
		node = node.Alias
	}
	size, known := e.anchors[node]
	if known {
		return size
	}
	if node.Anchor != "" {
		e.anchors[node] = e.limit + 1 // an anchor that contains itself has no end
	}
	size = len(node.Value) + 4 // with its punctuation
	for _, child := range node.Content {
		size = min(size+e.measure(child), e.limit+1)
	}
	if node.Anchor != "" {
		e.anchors[node] = size
	}
	return size
}
