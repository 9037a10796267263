package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// jsonReader reads JSON objects that follow each other.
type jsonReader struct {
	*json.Decoder
	in         *lineCounter
	compressed bool
	document   int
	yield      func(Entry) bool
}

// readJSON reads JSON documents until the text ends or something else follows. It returns false at the end
// of the text, or if yield returned false.
func (t *documentReader) readJSON() (more bool, err error) {
	in := &lineCounter{r: t.in, line: t.line}
	j := &jsonReader{Decoder: json.NewDecoder(in), in: in, compressed: t.compressed, document: t.document,
		yield: t.yield}
	for {
		j.setLimit()
		j.More() // reads up to the next document
		if in.err != nil && !errors.Is(in.err, io.EOF) {
			return false, in.err
		}
		var next [1]byte
		switch _, err := j.Buffered().Read(next[:]); {
		case err != nil:
			return false, nil
		case next[0] != '{':
			t.in = bufio.NewReaderSize(io.MultiReader(j.Buffered(), t.in), peekSize)
			t.line, t.document = in.lineAt(j.InputOffset()), j.document
			return true, nil
		}
		if more, err := j.readDocument(); err != nil || !more {
			return false, err
		}
	}
}

// setLimit sets the limit to MaxDocument bytes from the current offset.
func (j *jsonReader) setLimit() { j.in.limit = j.InputOffset() + MaxDocument }

// errStopped is returned if yield returned false.
var errStopped = errors.New("stopped")

func errStoppedUnless(more bool) error {
	if more {
		return nil
	}
	return errStopped
}

// readDocument reads one document. After a syntax error the rest of the text is unreadable.
func (j *jsonReader) readDocument() (more bool, err error) {
	j.document++
	position := Position{Line: j.in.lineAt(j.InputOffset()), Document: j.document}
	err = j.object(&list{Position: position, yield: j.yield})
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, errStopped):
		return false, nil
	case j.in.err != nil && !errors.Is(j.in.err, io.EOF):
		return false, j.in.err
	case errors.Is(err, io.ErrUnexpectedEOF):
		position.Line = j.in.lineAt(j.in.lastContent)
	case errors.As(err, &syntax):
		position.Line = j.in.lineAt(j.InputOffset() + j.syntaxOffset())
	default:
		return false, err
	}
	if j.compressed { // damaged data can be invalid JSON: find the checksum error
		if _, err := io.Copy(io.Discard, j.in.r); err != nil {
			return false, err
		}
	}
	j.yield(Entry{Position: position, Err: fmt.Errorf("not valid JSON: %w", err)})
	return false, nil
}

// syntaxOffset returns the offset of the syntax error in the unread text. The offset of the error itself does
// not count tokens.
func (j *jsonReader) syntaxOffset() int64 {
	rest, _ := io.ReadAll(j.Buffered()) // of bytes in memory
	rest = bytes.TrimLeft(rest, " \t\r\n,:")
	var syntax *json.SyntaxError
	if err := json.Unmarshal(rest, new(json.RawMessage)); !errors.As(err, &syntax) {
		return 0
	}
	buffered, _ := io.ReadAll(j.Buffered())
	return int64(len(buffered)-len(rest)) + syntax.Offset - 1
}

// object reads one object and yields it, or the items of a List.
func (j *jsonReader) object(l *list) error {
	if _, err := j.Token(); err != nil { // the brace
		return err
	}
	for j.More() {
		token, err := j.Token()
		if err != nil {
			return err
		}
		name, ok := token.(string)
		if !ok {
			return fmt.Errorf("unexpected token %v", token)
		}
		line := j.in.lineAt(j.InputOffset())
		var value json.RawMessage
		if name == "items" {
			value, err = j.items(l)
		} else {
			value, err = j.value(l, name)
		}
		if err != nil {
			return err
		}
		if value != nil {
			l.field(name, value, line)
		}
	}
	if _, err := j.Token(); err != nil { // the brace
		return err
	}
	return errStoppedUnless(l.end())
}

// value reads the value of a field and checks for duplicate keys.
func (j *jsonReader) value(l *list, field string) (value json.RawMessage, err error) {
	if err := j.Decode(&value); err != nil {
		return nil, err
	}
	line := j.in.lineAt(j.InputOffset() - int64(len(value)))
	if path, at, found := jsontext.Duplicate(value); found {
		l.noteDuplicate(field+"."+path, line+bytes.Count(value[:at], newline))
	}
	return value, nil
}

var newline = []byte{'\n'}

// items reads the value of the field "items". It yields the elements of an array, and returns any other
// value.
func (j *jsonReader) items(l *list) (json.RawMessage, error) {
	token, err := j.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return j.members(l)
	case json.Delim('['):
	default:
		return json.Marshal(token)
	}
	l.begin()
	for j.More() {
		j.setLimit()
		var data json.RawMessage
		if err := j.Decode(&data); err != nil {
			return nil, err
		}
		line := j.in.lineAt(j.InputOffset() - int64(len(data)))
		var duplicate error
		if path, at, found := jsontext.Duplicate(data); found {
			line, duplicate = line+bytes.Count(data[:at], newline), duplicateError(path)
		}
		if !l.item(line, data, duplicate) {
			return nil, errStopped
		}
	}
	j.setLimit()
	_, err = j.Token() // the bracket
	return nil, err
}

// members reads the rest of an object that is the value of "items".
func (j *jsonReader) members(l *list) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	for j.More() {
		token, err := j.Token()
		if err != nil {
			return nil, err
		}
		name := fmt.Sprint(token)
		if fields[name] != nil {
			l.noteDuplicate("items."+name, j.in.lineAt(j.InputOffset()))
		}
		if fields[name], err = j.value(l, "items."+name); err != nil {
			return nil, err
		}
	}
	if _, err := j.Token(); err != nil { // the brace
		return nil, err
	}
	return json.Marshal(fields)
}

// lineCounter counts the lines that a decoder reads ahead.
type lineCounter struct {
	r     io.Reader
	read  int64
	limit int64 // offset up to which the decoder may read
	err   error
	// breaks are the offsets of the newlines after the byte that line belongs to.
	breaks      []int64
	line        int
	lastContent int64 // offset of the last byte that is not white space
}

func (c *lineCounter) Read(p []byte) (int, error) {
	if c.read > c.limit+peekSize {
		c.err = ErrTooLarge
		return 0, c.err
	}
	n, err := c.r.Read(p)
	for at, b := range p[:n] {
		switch b {
		case '\n':
			c.breaks = append(c.breaks, c.read+int64(at))
		case ' ', '\t', '\r':
		default:
			c.lastContent = c.read + int64(at)
		}
	}
	c.read += int64(n)
	c.err = err
	return n, err
}

// lineAt returns the line of an offset. Offsets must not decrease from call to call.
func (c *lineCounter) lineAt(offset int64) int {
	for len(c.breaks) > 0 && c.breaks[0] < offset {
		c.breaks = c.breaks[1:]
		c.line++
	}
	return c.line
}
