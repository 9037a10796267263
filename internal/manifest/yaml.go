package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
)

// yamlReader reads YAML documents. The items of a list in block style are read one by one where that is certain; all else
// is read document by document.
type yamlReader struct {
	in    *bufio.Reader
	yield func(Entry) bool

	line     int // of the last line that was read
	document int
	back     lineBuffer // lines that are to be read again
	opening  []byte     // the line that begins the next document and belongs to it, or nil
	// instead is the error of the first document where that is no good YAML; nil: its own.
	instead *Entry
}

// lineBuffer gives back lines.
type lineBuffer struct {
	text []byte
	at   int // what comes next
}

func (b *lineBuffer) empty() bool { return b.at == len(b.text) }

func (b *lineBuffer) next() []byte {
	rest := b.text[b.at:]
	end := bytes.IndexByte(rest, '\n') + 1
	if end == 0 {
		end = len(rest)
	}
	b.at += end
	return rest[:end:end]
}

// back puts text before what comes next; what has come from here a moment ago is still there.
func (b *lineBuffer) back(text []byte) {
	if bytes.HasSuffix(b.text[:b.at], text) {
		b.at -= len(text)
		return
	}
	examined(len(text) + len(b.text) - b.at)
	b.text, b.at = append(bytes.Clone(text), b.text[b.at:]...), 0
}

// run reads all documents.
func (y *yamlReader) run() error {
	for {
		more, err := y.one()
		if y.instead != nil && errors.Is(err, ErrTooLarge) {
			y.yield(*y.instead)
			return nil
		}
		if err != nil || !more {
			return err
		}
	}
}

// next returns the next line with a newline, or io.EOF. A line that does not end is one, too. Of the break of a line that ends with
// a carriage return and a newline the return is left out, as kubectl's libraries do: YAML takes further ones before it for
// breaks of their own.
func (y *yamlReader) next() ([]byte, error) {
	y.line++
	if !y.back.empty() {
		return y.back.next(), nil
	}
	var line []byte
	for {
		part, err := y.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > MaxDocument:
			return nil, ErrTooLarge
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case len(line) > 0 && errors.Is(err, io.EOF):
			err = nil
		}
		if isLogStart(line) {
			return y.pastLog(line)
		}
		if text, ok := bytes.CutSuffix(line, []byte("\r\n")); ok {
			line = append(text, '\n')
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
		y.yield(Entry{Place: Place{Line: start, Document: y.document + 1}, Err: errOpenLog}) // nothing comes that could be stopped
		err = nil
	}
	return []byte("---\n"), err
}

// unread makes so many lines, up to the last one that was read, the next ones.
func (y *yamlReader) unread(text []byte, lines int) {
	y.back.back(text)
	y.line -= lines
}

// one reads a document, and reports whether another may follow.
func (y *yamlReader) one() (more bool, err error) {
	c := y.begin()
	l := &list{yield: y.yield}
	l.Document = y.document + 1
	for {
		line, err := y.next()
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		if err != nil || isSeparator(line) {
			if hasContent(line) {
				y.opening = bytes.Clone(line)
			}
			if c.content || l.streams {
				y.document++
				return y.finish(c, l) && err == nil, nil
			}
			if err != nil {
				return false, nil
			}
			c = y.begin()
			continue
		}
		if !c.content && directive.Match(line) {
			line = []byte("\n") // it tells of YAML, not of the document
		}
		if !l.streams && itemsKey.Match(bytes.TrimRight(line, "\r\n")) && !c.whole {
			switch more, err := y.stream(c, l); {
			case err != nil || !more:
				return false, err
			case l.streams:
				continue
			}
		}
		if c.add(line); c.text.Len() > MaxDocument {
			return false, ErrTooLarge
		}
	}
}

// begin gives the text of the next document, as far as it stands on the line that separates it.
func (y *yamlReader) begin() *chunk {
	c := &chunk{first: y.line + 1}
	if y.opening != nil {
		c.first = y.line
		c.add(y.opening)
		y.opening = nil
	}
	return c
}

var (
	directive = regexp.MustCompile(`^%(YAML|TAG)\s`)
	itemsKey  = regexp.MustCompile(`^items:\s*(#.*)?$`)
)

// isSeparator reports whether a line ends a document. YAML forbids such a line within one, whatever it is in.
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

// isBlank reports whether there is nothing but a comment.
func isBlank(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) == 0 || text[0] == '#'
}

// finish ends a document.
func (y *yamlReader) finish(c *chunk, l *list) bool {
	instead := y.instead
	y.instead = nil
	l.Line = c.start()
	if c.parts != nil {
		for name, value := range c.parts {
			l.field(name, value)
		}
		return l.end()
	}
	data, err := c.decode()
	if err != nil {
		if instead != nil {
			return y.yield(*instead)
		}
		return y.yield(Entry{Place: Place{Line: lineOf(err, l.Line), Document: l.Document}, Err: err})
	}
	if string(data) == "null" && !l.streams {
		return true // comments
	}
	parts, err := partsOf(data)
	switch {
	case instead != nil && (err != nil || textOf(parts["apiVersion"]) == "" || textOf(parts["kind"]) == ""):
		return y.yield(*instead)
	case err != nil:
		return y.yield(Entry{Place: l.Place, Err: err})
	case l.streams && parts["items"] != nil:
		l.twice = true
	case !l.streams && (parts["items"] == nil || !isList(textOf(parts["kind"]))):
		return y.object(l, parts, data)
	}
	for name, value := range parts {
		if name != "items" {
			l.field(name, value)
		}
	}
	return l.all(parts["items"]) && l.end()
}

// partsOf returns the fields of an object in JSON.
func partsOf(data []byte) (map[string]json.RawMessage, error) {
	var parts map[string]json.RawMessage
	if json.Unmarshal(data, &parts) != nil || parts == nil {
		return nil, ErrNotObject
	}
	return parts, nil
}

// object yields a document that is no list.
func (y *yamlReader) object(l *list, parts map[string]json.RawMessage, data []byte) bool {
	switch {
	case len(parts) == 0:
		return true
	case !isSet(parts["apiVersion"]) || !isSet(parts["kind"]):
		return y.yield(Entry{Place: l.Place, Err: ErrNoKind})
	}
	e := Entry{Place: l.Place, Data: data}
	e.take(identityOf(parts["apiVersion"], parts["kind"], parts["metadata"]))
	return y.yield(e)
}

// isSet reports whether a field has a value other than nothing.
func isSet(value json.RawMessage) bool {
	return value != nil && string(value) != `""` && string(value) != "null"
}
