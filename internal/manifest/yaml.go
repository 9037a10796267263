package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	yamlv2 "go.yaml.in/yaml/v2"
	yamlv3 "go.yaml.in/yaml/v3"
)

// readYAML reads one document. It returns false at the end of the text, or if yield returned false.
func (t *documentReader) readYAML() (more bool, err error) {
	t.document++
	text, firstLine, more, err := t.documentText()
	switch {
	case err != nil:
		return false, err
	case isLargeList(text), !more && isCutList(text):
		return t.readItems(text, firstLine)
	case !more && bytes.HasSuffix(bytes.TrimSpace(text), []byte("\nitems:")): // clients write []
		at := Position{Line: firstLine, Document: t.document}
		return t.yield(Entry{Position: at, Err: ErrTruncated}), nil
	}
	l := t.newList(contentLine(text, firstLine))
	data, err := decodeYAML(text, firstLine, !more)
	switch {
	case errors.Is(err, ErrTruncated) && itemsPattern.Match(text):
		return t.readItems(text, firstLine)
	case err != nil:
		return t.yield(Entry{Position: Position{Line: lineOf(err, l.Line), Document: t.document},
			Err: err}) && more, nil
	case string(data) == "null" && (len(text) == 0 || more || t.document > 1): // as kubectl
		return more, nil
	}
	return l.addDecoded(data, func() []int { return itemLines(text, firstLine) }) && more, nil
}

var directivePattern = regexp.MustCompile(`^%(YAML|TAG)\s`)

// documentText returns the text of a document and the line at which it begins. more is false at the end.
func (t *documentReader) documentText() (text []byte, firstLine int, more bool, err error) {
	firstLine = t.line
	for hasContent := false; ; {
		line, err := t.readLine()
		switch {
		case errors.Is(err, io.EOF) && !hasContent:
			return nil, firstLine, false, nil
		case errors.Is(err, io.EOF):
			return text, firstLine, false, nil
		case err != nil:
			return nil, 0, false, err
		}
		if unmarked, isMarked := bytes.CutPrefix(line, byteOrderMark); isMarked && !hasContent {
			line = unmarked // files were concatenated
		}
		switch {
		case hasContent && t.endsDocument(line):
			return text, firstLine, true, nil
		case !hasContent && bytes.HasPrefix(line, logStart):
			if err := t.skipLog(line); err != nil && !errors.Is(err, io.EOF) {
				return nil, 0, false, err
			}
			return nil, firstLine, true, nil
		case !hasContent && isSeparator(line):
			text = text[:0]
			if firstLine = t.line; isBareSeparator(line) {
				continue
			}
			firstLine--
		case !hasContent && directivePattern.Match(line):
			line = newline
		}
		hasContent = hasContent || !isBlank(line)
		text = append(text, line...)
		switch before := len(text) - len(line); {
		case len(text) > MaxDocument:
			return nil, 0, false, ErrTooLarge
		case before <= maxWhole && isLargeList(text), len(text) > maxWhole && itemsPattern.Match(line):
			return text, firstLine, true, nil
		}
	}
}

// endsDocument reports whether a line after a document's content ends it. The next document begins after the
// line, or with the rest of the line after a separator, as in "--- {a: b}".
func (t *documentReader) endsDocument(line []byte) bool {
	if unmarked := bytes.TrimPrefix(line, byteOrderMark); isSeparator(unmarked) {
		line = unmarked
	} else if !bytes.HasPrefix(line, logStart) {
		return false
	}
	if !isSeparator(line) || !isBareSeparator(line) {
		t.pendingLine = bytes.Clone(line)
		t.line--
	}
	return true
}

func itemLines(text []byte, firstLine int) (lines []int) {
	var document yamlv3.Node
	if yamlv3.Unmarshal(text, &document) != nil || document.Kind != yamlv3.DocumentNode {
		return nil
	}
	items := document.Content[0].Content
	if fields := items; document.Content[0].Kind != yamlv3.SequenceNode {
		items = nil
		for i := 0; i+1 < len(fields); i += 2 {
			if fields[i].Value == "items" {
				items = fields[i+1].Content
			}
		}
	}
	for _, item := range items {
		lines = append(lines, firstLine+item.Line-1)
	}
	return lines
}

// isBareSeparator reports whether a separator has no document on its line.
func isBareSeparator(line []byte) bool {
	return bytes.HasPrefix(line, []byte("...")) || isBlank(line[len("---"):])
}

// isSeparator reports whether a line ends a document. YAML forbids such lines in scalars.
func isSeparator(line []byte) bool {
	line = bytes.TrimRight(line, "\r\n\u0085\u2028\u2029")
	if after, ok := bytes.CutPrefix(line, []byte("---")); ok {
		return len(after) == 0 || strings.IndexByte(" \t#", after[0]) >= 0 // kubectl accepts "---#"
	}
	after, ok := bytes.CutPrefix(line, []byte("..."))
	return ok && (len(after) == 0 || strings.IndexByte(" \t", after[0]) >= 0) && isBlank(after)
}

// isBlank reports whether a line, or the rest of a line, is empty or a comment.
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
	error
}

func (e *yamlError) Unwrap() error { return e.error }

func lineOf(err error, fallback int) int {
	var yamlErr *yamlError
	if errors.As(err, &yamlErr) && yamlErr.line > 0 {
		return yamlErr.line
	}
	return fallback
}

var (
	yamlLinePattern = regexp.MustCompile(`(?s)^.*?line (\d+): (.*)$`)
	// errSeparator is the error for a separator that the parser recognizes and isSeparator does not, such as
	// one after another line break than \n. Documents after it would be lost.
	errSeparator = errors.New("not valid YAML here: more than one document before a line with ---; " +
		"are the line breaks others than \\n? Convert them")
)

// decodeYAML returns the JSON of a text that begins at firstLine of a file. Duplicate keys are an error. With
// isLast, an error that more text could correct is ErrTruncated.
func decodeYAML(text []byte, firstLine int, isLast bool) ([]byte, error) {
	data, err := yamlToJSON(text)
	if err == nil || errors.Is(err, errSeparator) || errors.As(err, new(*yamlError)) {
		return data, err
	}
	at := &yamlError{0, fmt.Errorf("not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))}
	if parts := yamlLinePattern.FindStringSubmatch(err.Error()); parts != nil {
		line, _ := strconv.Atoi(parts[1]) // digits
		at = &yamlError{firstLine + line - 1, errors.New("not valid YAML: " + parts[2])}
	}
	cut := &cutReader{text: text}
	isSyntax := !errors.As(err, new(*yamlv2.TypeError)) && yamlv2.NewDecoder(cut).Decode(new(any)) != nil
	if isLast && isSyntax && cut.atEnd {
		at.error = fmt.Errorf("%w: %w", at.error, ErrTruncated)
	}
	return nil, at
}

// cutReader reads byte by byte, because the parser reads ahead otherwise. atEnd is set at the end.
type cutReader struct {
	text  []byte
	atEnd bool
}

func (r *cutReader) Read(p []byte) (int, error) {
	if r.atEnd = len(r.text) == 0; r.atEnd {
		return 0, io.EOF
	}
	n := copy(p, r.text[:1])
	r.text = r.text[n:]
	return n, nil
}

// yamlToJSON is YAMLToJSON of sigs.k8s.io/yaml for a text with one document. Duplicate keys are an error, but
// a key may override a merged one.
func yamlToJSON(text []byte) ([]byte, error) {
	value, err := decodeDocument(text, true)
	var typeErr *yamlv2.TypeError
	if errors.As(err, &typeErr) && bytes.Contains(text, []byte("<<")) {
		// The strict decoder takes a key that overrides a merged one for a duplicate.
		var document yamlv3.Node
		if err = yamlv3.Unmarshal(text, &document); err == nil {
			err = checkDuplicateKeys(&document)
		}
		if err == nil {
			value, err = decodeDocument(text, false)
		}
	}
	if err == nil {
		value, err = (&jsonConverter{maxExpansion*len(text) + freeExpansion}).convert(value)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// decodeDocument decodes the only document of a text.
func decodeDocument(text []byte, strict bool) (value any, err error) {
	decoder := yamlv2.NewDecoder(bytes.NewReader(text))
	decoder.SetStrict(strict)
	if err := decoder.Decode(&value); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch err := decoder.Decode(new(any)); {
	case errors.Is(err, io.EOF):
		return value, nil
	case err != nil:
		return nil, err
	}
	return nil, errSeparator
}

// convert converts a decoded value like sigs.k8s.io/yaml, but rejects keys that are equal in JSON.
func (c *jsonConverter) convert(value any) (any, error) {
	text, _ := value.(string)
	err := c.spend(len(text))
	if err != nil {
		return nil, err
	}
	switch value := value.(type) {
	case map[any]any:
		object := make(map[string]any, len(value))
		for k, v := range value {
			key, err := jsonKey(k)
			if err == nil {
				err = c.spend(len(key))
			}
			if err != nil {
				return nil, err
			}
			if _, exists := object[key]; exists {
				return nil, fmt.Errorf("key %q already set in map", key)
			}
			if object[key], err = c.convert(v); err != nil {
				return nil, err
			}
		}
		return object, nil
	case []any:
		for i, v := range value {
			if value[i], err = c.convert(v); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

// jsonKey returns a key as sigs.k8s.io/yaml does.
func jsonKey(key any) (string, error) {
	switch key := key.(type) {
	case string:
		return key, nil
	case int, int64, bool:
		return fmt.Sprint(key), nil
	case float64:
		switch {
		case math.IsInf(key, 1):
			return ".inf", nil
		case math.IsInf(key, -1):
			return "-.inf", nil
		case math.IsNaN(key):
			return ".nan", nil
		}
		return strconv.FormatFloat(key, 'g', -1, 32), nil
	}
	return "", fmt.Errorf("a key must be a string, not %v", key)
}

// checkDuplicateKeys returns an error if a map has a key twice. Merged keys are not its own.
func checkDuplicateKeys(node *yamlv3.Node) error {
	keys := map[any]bool{}
	for i, child := range node.Content {
		if node.Kind == yamlv3.MappingNode && i%2 == 0 && child.Kind == yamlv3.ScalarNode &&
			child.Tag != "!!merge" {
			key := any(child.Value)
			if child.Style == 0 { // plain: the decoder's version of YAML has more booleans
				_ = yamlv2.Unmarshal([]byte(child.Value), &key)
			}
			if keys[key] {
				return fmt.Errorf("line %d: key %#v already set in map", child.Line, key)
			}
			keys[key] = true
		}
		if err := checkDuplicateKeys(child); err != nil {
			return err
		}
	}
	return nil
}

const (
	// maxExpansion is the factor by which aliases may enlarge a document, beyond freeExpansion.
	maxExpansion  = 10
	freeExpansion = 64 << 10
)

// jsonConverter converts decoded values. left is the size that further values can have: the YAML library
// limits the number of nodes that aliases add, but few nodes can contain much text.
type jsonConverter struct{ left int }

// spend reserves space for a value of a size, and for its punctuation.
func (c *jsonConverter) spend(size int) error {
	if c.left -= size + len(`"":,`); c.left < 0 {
		return &yamlError{0, fmt.Errorf("aliases make the document more than %d times as large as its text", maxExpansion)}
	}
	return nil
}
