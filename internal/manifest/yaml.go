package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// smallDocument is the size up to which a YAML list is decoded as one document if its items cannot be decoded
// separately.
const smallDocument = 64 << 10

// yamlDocument reads one YAML document. It decodes the items of a List in kubectl's format one by one: if a
// text is a sequence of one element, no quote, bracket or block is open at its end, so the next item begins
// there.
type yamlDocument struct {
	text  *documentReader
	list  *list
	first int // line
	small *bytes.Buffer
	// head is the text before the items, and tail the text after them, which begins at tailLine.
	head, tail bytes.Buffer
	tailLine   int
	entries    []Entry // of a small document
	// an item of a small document cannot be decoded separately
	failed  bool
	unsplit bool // the items cannot be decoded separately
}

// readYAML reads one document. It returns false at the end of the text, or if yield returned false.
func (t *documentReader) readYAML() (more bool, err error) {
	t.document++
	d := &yamlDocument{text: t, first: t.line, small: &bytes.Buffer{}}
	d.list = &list{Position: Position{Document: t.document}, yield: d.yield}
	more, err = d.read()
	if err != nil {
		return false, err
	}
	if d.small != nil && d.failed {
		if all, err := decodeYAML(d.small.Bytes(), d.first); err == nil {
			d.entries = nil
			d.list = &list{Position: Position{Line: contentLine(d.small.Bytes(), d.first),
				Document: t.document},
				yield: d.yield}
			d.decoded(all)
		}
	}
	d.small = nil
	return d.flush() && more, nil
}

// yield yields an entry, or stores it while the document is small.
func (d *yamlDocument) yield(e Entry) bool {
	if d.small == nil {
		return d.flush() && d.text.yield(e)
	}
	e.Data = bytes.Clone(e.Data)
	d.entries = append(d.entries, e)
	return true
}

// flush yields the stored entries.
func (d *yamlDocument) flush() bool {
	entries := d.entries
	d.entries = nil
	for _, e := range entries {
		if !d.text.yield(e) {
			return false
		}
	}
	return true
}

var (
	directive = regexp.MustCompile(`^%(YAML|TAG)\s`)
	itemsKey  = regexp.MustCompile(`^items:\s*(#.*)?$`)
)

// read reads the document to its end. It returns false at the end of the text, or if yield returned false.
func (d *yamlDocument) read() (more bool, err error) {
	content, indent := false, -1 // indent is the column of the items' dashes
	var item bytes.Buffer
	itemLine := 0
	endItem := func() bool {
		if item.Len() == 0 {
			return true
		}
		more := d.item(item.Bytes(), itemLine)
		item.Reset()
		return more
	}
	afterKey, inItems := false, false
	for {
		line, err := d.line()
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		switch separator := err == nil && isSeparator(line); {
		case err != nil && !content:
			return false, nil
		case err != nil:
			endItem()
			d.end()
			return false, nil
		case separator && content:
			if !isBareSeparator(line) { // as in "--- {a: b}"
				d.text.unread(line)
			}
			return endItem() && d.end(), nil
		case separator:
			d.head.Reset()
			d.first = d.text.line
			if isBareSeparator(line) {
				continue
			}
			d.first--
		case !content && directive.Match(line):
			line = []byte("\n")
		}
		trimmed := bytes.TrimLeft(line, " ")
		column := len(line) - len(trimmed)
		blank := isBlank(trimmed)
		content = content || len(bytes.TrimSpace(line)) > 0
		begins := !blank && isItem(trimmed)
		if afterKey && !blank {
			if inItems = begins && d.streamable(); inItems {
				indent = column
				d.list.begin()
			}
			afterKey = false
		}
		switch {
		case inItems && begins && column == indent:
			if !endItem() {
				return false, nil
			}
			itemLine = d.text.line - 1
			item.Write(line)
		case inItems && !blank && column <= indent:
			inItems, d.tailLine = false, d.text.line-1
			if !endItem() {
				return false, nil
			}
			d.tail.Write(line)
		case inItems && item.Len() > 0:
			item.Write(line)
		case d.list.hasItems:
			d.tail.Write(line)
		default:
			d.head.Write(line)
			afterKey = afterKey && blank || itemsKey.Match(bytes.TrimRight(line, "\n"))
		}
		if item.Len()+d.head.Len()+d.tail.Len() > MaxDocument {
			return false, ErrTooLarge
		}
	}
}

// line returns the next line. When the document becomes too large to be decoded as one, the stored entries
// are final.
func (d *yamlDocument) line() ([]byte, error) {
	line, err := d.text.readLine()
	if d.small != nil {
		if d.small.Write(line); d.small.Len() > smallDocument {
			d.small = nil
		}
	}
	return line, err
}

// streamable reports whether the text before the items is a mapping without anchors, and adds its fields.
func (d *yamlDocument) streamable() bool {
	if d.unsplit {
		return false
	}
	head := d.head.Bytes()
	data, err := decodeYAML(head, d.first)
	if d.unsplit = err != nil || mayHave(head, '&'); d.unsplit {
		return false
	}
	fields, err := fieldsOf(data)
	if d.unsplit = err != nil || string(fields["items"]) != "null"; d.unsplit {
		return false
	}
	delete(fields, "items")
	d.list.fields(fields)
	return true
}

// item decodes one item. It returns false to stop.
func (d *yamlDocument) item(text []byte, line int) bool {
	data, err := decodeYAML(text, line)
	var one []json.RawMessage
	if err == nil {
		err = json.Unmarshal(data, &one)
	}
	if err == nil && len(one) != 1 {
		err = errors.New("not valid YAML: it is not clear where this item ends")
	}
	if err != nil {
		d.failed = true
		return d.list.item(lineOf(err, line), nil, err)
	}
	return d.list.item(line, one[0], nil)
}

// end decodes the rest of the document, without the items that were decoded separately. It returns false to
// stop.
func (d *yamlDocument) end() bool {
	d.list.Line = contentLine(d.head.Bytes(), d.first)
	if !d.list.hasItems {
		data, err := decodeYAML(d.head.Bytes(), d.first)
		if err != nil {
			return d.yield(Entry{Position: Position{Line: lineOf(err, d.list.Line),
				Document: d.list.Document},
				Err: err})
		}
		return d.decoded(data)
	}
	if d.tail.Len() > 0 {
		data, err := decodeYAML(d.tail.Bytes(), d.tailLine)
		if err == nil && string(data) != "null" {
			var fields map[string]json.RawMessage
			if fields, err = fieldsOf(data); err == nil {
				d.list.fields(fields)
			}
		}
		if err != nil {
			d.failed = true // an alias may refer to an item
			return d.yield(Entry{Position: Position{Line: lineOf(err, d.tailLine), Document: d.list.Document},
				Err: err})
		}
	}
	return d.list.end()
}

// decoded yields a document that was decoded as one, or its items. It returns false to stop.
func (d *yamlDocument) decoded(data []byte) bool {
	if string(data) == "null" {
		return true
	}
	fields, err := fieldsOf(data)
	if err != nil {
		return d.yield(Entry{Position: d.list.Position, Err: ErrNotObject})
	}
	var items []json.RawMessage
	if value := fields["items"]; len(value) > 0 && value[0] == '[' {
		_ = json.Unmarshal(value, &items) // an array
		delete(fields, "items")
		d.list.begin()
	}
	d.list.data = data
	d.list.fields(fields)
	for _, item := range items {
		if !d.list.item(d.list.Line, item, nil) {
			return false
		}
	}
	return d.list.end()
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

// isItem reports whether a line, without its indentation, starts an element of a sequence.
func isItem(trimmed []byte) bool {
	return bytes.HasPrefix(trimmed, []byte("- ")) || bytes.Equal(bytes.TrimRight(trimmed, "\n"), []byte("-"))
}

// contentLine returns the first line that is neither blank nor a comment.
func contentLine(text []byte, first int) int {
	n := first
	for line := range bytes.Lines(text) {
		if !isBlank(line) {
			return n
		}
		n++
	}
	return first
}

// yamlError is an error of the YAML library, with the line of the file.
type yamlError struct {
	line int
	text string
}

func (e *yamlError) Error() string { return e.text }

func lineOf(err error, otherwise int) int {
	var at *yamlError
	if errors.As(err, &at) && at.line > 0 {
		return at.line
	}
	return otherwise
}

var (
	yamlLine = regexp.MustCompile(`(?s)^.*?line (\d+): (.*)$`)
	// foreignLineBreak matches a separator after a line break that YAML recognizes and readLine does not. The
	// library would ignore the document after it.
	foreignLineBreak = regexp.MustCompile(`(?:\r|\xc2\x85|\xe2\x80[\xa8\xa9])(?:---|\.\.\.)` +
		`(?:[ \t\r\n]|\xc2\x85|\xe2\x80[\xa8\xa9]|$)|(?m:^)(?:---|\.\.\.)(?:\xc2\x85|\xe2\x80[\xa8\xa9])`)
	errForeignLineBreak = errors.New("not valid YAML here: line breaks other than \\n separate documents; convert the line ends")
)

// decodeYAML returns the JSON of a text that begins at a line of a file. Duplicate keys are an error.
func decodeYAML(text []byte, first int) ([]byte, error) {
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
	var own *yamlError
	if errors.As(err, &own) {
		return nil, err
	}
	if parts := yamlLine.FindStringSubmatch(err.Error()); parts != nil {
		line, _ := strconv.Atoi(parts[1]) // digits
		return nil, &yamlError{first + line - 1, "not valid YAML: " + parts[2]}
	}
	return nil, &yamlError{0, "not valid YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
}

func errAliases(size int) error {
	return &yamlError{text: fmt.Sprintf("aliases make the document more than %d times as large as its %d bytes", maxExpansion, size)}
}
