package offline

import (
	"bufio"
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

// yamlReader reads YAML documents. A field items at the top, in block style, is read item by item; all else is
// read as a whole.
type yamlReader struct {
	in    *bufio.Reader
	yield func(entry) bool

	line     int // of the last line that was read
	document int
	back     []byte // a line that is to be read again, or nil
	opening  []byte // the line that begins the next document and belongs to it, or nil
}

// run reads all documents.
func (y *yamlReader) run() error {
	for {
		more, err := y.one()
		if err != nil || !more {
			return err
		}
	}
}

// next returns the next line with its break, or io.EOF. A line that does not end is one, too.
func (y *yamlReader) next() ([]byte, error) {
	y.line++
	if line := y.back; line != nil {
		y.back = nil
		return line, nil
	}
	var line []byte
	for {
		part, err := y.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxDocument:
			return nil, errTooLarge
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case len(line) > 0 && errors.Is(err, io.EOF):
			err = nil
		}
		if isLogStart(line) {
			return y.pastLog(line)
		}
		return line, err
	}
}

// pastLog reads a log to its end, and puts in its place what parts documents.
func (y *yamlReader) pastLog(first []byte) ([]byte, error) {
	start, within := y.line, false
	err := skipLog(y.in, endOfLog(first), func(_ int, line bool) {
		if !within {
			y.line++
		}
		within = !line
	})
	if errors.Is(err, io.EOF) {
		y.yield(entry{place: place{line: start, document: y.document + 1}, err: errOpenLog}) // nothing comes that could be stopped
		err = nil
	}
	return []byte("---\n"), err
}

// unread makes the last line the next one.
func (y *yamlReader) unread(line []byte) { y.back, y.line = line, y.line-1 }

// one reads a document, and reports whether another may follow.
func (y *yamlReader) one() (more bool, err error) {
	c := y.begin()
	g := &gatherer{yield: y.yield}
	g.document = y.document + 1
	itemized := false
	for {
		line, err := y.next()
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		if err != nil || isSeparator(line) {
			if hasContent(line) {
				y.opening = line
			}
			if !c.blank() || itemized {
				y.document++
				return y.finish(c, g, itemized) && err == nil, nil
			}
			if err != nil {
				return false, nil
			}
			c = y.begin()
			continue
		}
		if c.blank() && !itemized && directive.Match(line) {
			line = []byte("\n") // it tells of YAML, not of the document
		}
		if !itemized && itemsKey.Match(bytes.TrimRight(line, "\r\n")) {
			indent, found, err := y.sequence()
			if err != nil {
				return false, err
			}
			if found {
				itemized = true
				y.header(c, g)
				ok, err := y.items(g, indent)
				if err != nil || !ok {
					return false, err
				}
				c.add(nil, y.line) // so that lines are counted right: what comes now is further down
				continue
			}
		}
		if c.add(line, y.line); c.text.Len() > maxDocument {
			return false, errTooLarge
		}
	}
}

// begin gives the text of the next document, as far as it stands on the line that separates it.
func (y *yamlReader) begin() *chunk {
	c := &chunk{first: y.line + 1}
	if y.opening != nil {
		c.first = y.line
		c.add(y.opening, y.line)
		y.opening = nil
	}
	return c
}

var (
	directive = regexp.MustCompile(`^%(YAML|TAG)\s`)
	itemsKey  = regexp.MustCompile(`^items:\s*(#.*)?$`)
)

// isSeparator reports whether a line ends a document.
func isSeparator(line []byte) bool {
	if after, ok := bytes.CutPrefix(line, []byte("---")); ok {
		return len(after) == 0 || isSpace(after[0])
	}
	after, ok := bytes.CutPrefix(line, []byte("..."))
	return ok && (len(after) == 0 || isSpace(after[0])) && isBlank(after)
}

// hasContent reports whether the document that follows a separator begins on the same line, as in "--- {a: b}".
func hasContent(separator []byte) bool {
	after, ok := bytes.CutPrefix(separator, []byte("---"))
	return ok && !isBlank(after)
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// isBlank reports whether there is nothing but a comment.
func isBlank(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) == 0 || text[0] == '#'
}

// header tells the gatherer what the document is, as far as that has been read: items are only understood so.
func (y *yamlReader) header(c *chunk, g *gatherer) {
	var known identity
	if data, err := yaml.YAMLToJSON(c.text.Bytes()); err == nil {
		_ = json.Unmarshal(data, &known) // what is wrong is reported at the document's end
	}
	g.header = known
}

// sequence looks whether a block sequence follows, and returns how far it is indented.
func (y *yamlReader) sequence() (indent int, found bool, err error) {
	line, err := y.next()
	if err != nil {
		if errors.Is(err, io.EOF) {
			y.line--
			err = nil
		}
		return 0, false, err
	}
	y.unread(line)
	trimmed := bytes.TrimLeft(line, " ")
	return len(line) - len(trimmed), isItem(trimmed), nil
}

func isItem(trimmed []byte) bool {
	return bytes.HasPrefix(trimmed, []byte("- ")) || bytes.Equal(bytes.TrimRight(trimmed, "\r\n"), []byte("-"))
}

// items reads a sequence up to the line that is no part of it.
func (y *yamlReader) items(g *gatherer, indent int) (bool, error) {
	var c *chunk
	done := func() bool { return c == nil || y.item(c, g) }
	for {
		line, err := y.next()
		if errors.Is(err, io.EOF) {
			y.line--
			return done(), nil
		}
		if err != nil {
			return false, err
		}
		trimmed := bytes.TrimLeft(line, " ")
		depth := len(line) - len(trimmed)
		blank := len(bytes.TrimSpace(line)) == 0 || trimmed[0] == '#'
		switch {
		case isSeparator(line), !blank && depth <= indent && !(depth == indent && isItem(trimmed)):
			y.unread(line)
			return done(), nil
		case !blank && depth == indent:
			if !done() {
				return false, nil
			}
			c = &chunk{first: y.line}
		}
		if c.add(line, y.line); c.text.Len() > maxDocument {
			return false, errTooLarge
		}
	}
}

// item yields one item.
func (y *yamlReader) item(c *chunk, g *gatherer) bool {
	data, err := c.decode()
	if err == nil {
		var one []json.RawMessage
		if err = json.Unmarshal(data, &one); err == nil && len(one) == 1 {
			return g.item(c.first, one[0], nil)
		}
	}
	line := c.first
	var at *lineError
	if errors.As(err, &at) {
		line = at.line
	}
	return g.item(line, nil, err)
}

// finish ends a document.
func (y *yamlReader) finish(c *chunk, g *gatherer, itemized bool) bool {
	g.line = c.start()
	data, err := c.decode()
	if err != nil {
		var at *lineError
		if errors.As(err, &at) {
			g.line = at.line
		}
		return y.yield(entry{place: g.place, err: err})
	}
	if string(data) == "null" && !itemized {
		return true // comments
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return y.yield(entry{place: g.place, err: errNoObject})
	}
	if g.listed && parts["items"] != nil {
		return y.yield(entry{place: g.place, err: errors.New(`the key "items" is there twice`)})
	}
	items := parts["items"]
	delete(parts, "items")
	for name, value := range parts {
		g.field(name, value)
	}
	var all []json.RawMessage
	if items != nil && json.Unmarshal(items, &all) == nil { // a list in flow style; anything else is a field
		g.listed = true
		for _, item := range all {
			if !g.item(g.line, item, nil) {
				return false
			}
		}
	} else if items != nil {
		g.field("items", items)
	}
	return g.end()
}

// chunk is text that is decoded at once.
type chunk struct {
	text  bytes.Buffer
	first int // the line of the file that the text begins at
	// jump is where in the text lines were left out, and by how many.
	jump, skipped int
	lines         int
}

// add appends a line of the file; nil notes that lines up to number were left out.
func (c *chunk) add(line []byte, number int) {
	if line == nil {
		c.jump, c.skipped = c.lines, number-c.first+1-c.lines
		return
	}
	c.text.Write(line)
	c.lines++
}

func (c *chunk) blank() bool { return len(bytes.TrimSpace(c.text.Bytes())) == 0 }

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

// lineError is an error of syntax and the line that it is at.
type lineError struct {
	line int
	text string
}

func (e *lineError) Error() string { return e.text }

var yamlLine = regexp.MustCompile(`(?s)^.*?line (\d+): (.*)$`)

// decode returns the text in JSON. Keys that are there twice are an error.
func (c *chunk) decode() ([]byte, error) {
	data, err := yaml.YAMLToJSONStrict(c.text.Bytes())
	if err == nil {
		return data, nil
	}
	parts := yamlLine.FindStringSubmatch(err.Error())
	if parts == nil {
		return nil, fmt.Errorf("not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	line, _ := strconv.Atoi(parts[1]) // digits
	return nil, &lineError{c.fileLine(line), "not valid YAML: " + parts[2]}
}
