package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// chunk is text in YAML that is decoded at once.
type chunk struct {
	text    bytes.Buffer
	first   int  // the line of the file that the text begins at
	content bool // it has more than white space
	whole   bool // the document cannot be cut
	// jump is where in the text lines were left out, and by how many.
	jump, skipped int
	lines         int
	// parts are the fields of the document, where it was read as a whole in the middle of its items.
	parts map[string]json.RawMessage
}

// add appends a line.
func (c *chunk) add(line []byte) {
	c.text.Write(line)
	c.lines++
	c.content = c.content || len(bytes.TrimSpace(line)) > 0
}

// leaveOut notes that lines of the file up to this number are not in the text.
func (c *chunk) leaveOut(number int) { c.jump, c.skipped = c.lines, number-c.first+1-c.lines }

// fileLine is the line of the file for one of the text, from 1.
func (c *chunk) fileLine(line int) int {
	if c.skipped > 0 && line > c.jump {
		line += c.skipped
	}
	return c.first + line - 1
}

// start is the first line that says something.
func (c *chunk) start() int {
	n := 0
	for line := range bytes.Lines(c.text.Bytes()) {
		n++
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 && trimmed[0] != '#' {
			return c.fileLine(n)
		}
	}
	return c.first
}

// header returns what the text says of a document whose items follow. It is not certain when the text is not a mapping
// to its end, or when something may refer to it.
func (c *chunk) header() (known identity, certain bool) {
	data, err := c.decode()
	if err != nil || c.hasAnchors() {
		return known, false
	}
	if string(data) == "null" {
		return known, true
	}
	parts, err := partsOf(data)
	return identityOf(parts["apiVersion"], parts["kind"], nil), err == nil && parts["items"] == nil
}

// yamlError is what is wrong with a text, and in which line of the file.
type yamlError struct {
	line    int
	text    string
	content bool // not the syntax, but what it says
}

func (e *yamlError) Error() string { return e.text }

// lineOf is the line of an error, where it has one.
func lineOf(err error, otherwise int) int {
	var at *yamlError
	if errors.As(err, &at) && at.line > 0 {
		return at.line
	}
	return otherwise
}

// isContent reports whether a text cannot be read although its syntax is right.
func isContent(err error) bool {
	var at *yamlError
	return errors.As(err, &at) && at.content
}

var (
	yamlLine = regexp.MustCompile(`(?s)^.*?line (\d+): (.*)$`)
	// otherBreak is a separator behind a line break that ends no line here, though it does in YAML.
	otherBreak = regexp.MustCompile(`(?:\r|\xc2\x85|\xe2\x80[\xa8\xa9])(?:---|\.\.\.)(?:[ \t\r\n]|\xc2\x85|\xe2\x80[\xa8\xa9]|$)|(?m:^)(?:---|\.\.\.)(?:\xc2\x85|\xe2\x80[\xa8\xa9])`)
)

var errOtherBreak = errors.New("not valid YAML here: documents are separated by line breaks other than \\n; convert the line ends")

// decode returns the text in JSON. Keys that are there twice are an error.
func (c *chunk) decode() ([]byte, error) {
	text := c.text.Bytes()
	if (bytes.IndexByte(text, '\r') >= 0 || bytes.Contains(text, []byte("\xc2\x85")) || bytes.Contains(text, []byte("\xe2\x80"))) && otherBreak.Match(text) {
		return nil, errOtherBreak
	}
	err := checkAliases(text)
	if err == nil {
		var data []byte
		examined(len(text))
		if data, err = yaml.YAMLToJSONStrict(text); err == nil {
			return data, nil
		}
	}
	return nil, c.explain(err)
}

// explain finds the line of the file in an error of the library.
func (c *chunk) explain(err error) error {
	var own *yamlError
	if errors.As(err, &own) {
		return err
	}
	// The library has a list of what it cannot make values of, and one message about syntax.
	content := strings.Contains(err.Error(), "unmarshal errors:") || !strings.Contains(err.Error(), "yaml: ")
	parts := yamlLine.FindStringSubmatch(err.Error())
	if parts == nil {
		return &yamlError{text: "not valid YAML: " + strings.TrimPrefix(err.Error(), "yaml: "), content: content}
	}
	line, _ := strconv.Atoi(parts[1]) // digits
	return &yamlError{line: c.fileLine(line), text: "not valid YAML: " + parts[2], content: content}
}

func errAliases(size int) error {
	return &yamlError{text: fmt.Sprintf("refused: its aliases make more than %d times as much of %d bytes", maxExpansion, size)}
}
