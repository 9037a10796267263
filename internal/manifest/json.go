package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/crdcache/crdcache/internal/jsontext"
)

type jsonReader struct {
	*jsontext.Stream
	*documentReader
	canonical Canonical
}

var jsonReaders = sync.Pool{New: func() any { return &jsonReader{Stream: jsontext.NewStream(nil)} }}

// readJSON reads JSON documents until the text ends or something else follows. It returns false at the end
// of the text, or if yield returned false.
func (t *documentReader) readJSON() (more bool, err error) {
	hasRest := false // the buffer is still used
	j := jsonReaders.Get().(*jsonReader)
	defer func() {
		if j.documentReader = nil; !hasRest {
			jsonReaders.Put(j)
		}
	}()
	j.documentReader = t
	j.Reset(t.in)
	j.Line, j.MaxValue = t.line, MaxDocument
	for isFirst := true; ; isFirst = false {
		switch next, err := j.Peek(); {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return false, nil
		case err != nil:
			return false, err
		case next != '{' && !isFirst: // an array can be YAML
			t.in, t.line, hasRest = bufio.NewReaderSize(j.Rest(), peekSize), j.Line, true
			return true, nil
		}
		if more, err := j.readDocument(); err != nil || !more {
			return false, err
		}
	}
}

// errStopped is returned if yield returned false.
var errStopped = errors.New("stopped")

// readDocument reads one document. After a syntax error the rest of the text is unreadable.
func (j *jsonReader) readDocument() (more bool, err error) {
	j.document++
	l := j.newList(j.Line)
	position := l.Position
	if isArray, takeErr := j.Take('['); isArray {
		l.beginArray()
		if err = j.readItems(l); err == nil {
			err = stoppedUnless(l.finish())
		}
	} else if err = takeErr; err == nil {
		err = j.readObject(l)
	}
	var syntax *jsontext.SyntaxError
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, errStopped):
		return false, nil
	case errors.Is(err, jsontext.ErrTooLarge):
		return false, ErrTooLarge
	case !errors.As(err, &syntax) && !errors.Is(err, io.ErrUnexpectedEOF):
		return false, err
	}
	position.Line, err = j.describeSyntaxError(err)
	if j.compressed { // damaged data can be invalid JSON: find the checksum error
		if _, err := io.Copy(io.Discard, j.Rest()); err != nil {
			return false, err
		}
	}
	j.yield(Entry{Position: position, Err: fmt.Errorf("not valid JSON: %w", err)})
	return false, nil
}

func (j *jsonReader) describeSyntaxError(err error) (line int, describeSyntaxError error) {
	unread := bytes.TrimRight(j.Buffered(), " \t\r\n")
	var syntax *json.SyntaxError
	isSyntax := errors.As(json.Unmarshal(unread, new(json.RawMessage)), &syntax)
	switch {
	case len(unread) == 0:
		return j.ContentLine, ErrTruncated
	case isSyntax && strings.HasSuffix(syntax.Error(), "after top-level value"):
		return j.Line, fmt.Errorf("invalid character %q after a value", unread[0])
	case isSyntax && syntax.Error() != "unexpected end of JSON input":
		return j.Line + bytes.Count(unread[:syntax.Offset-1], newline), syntax
	case isSyntax, errors.Is(err, io.ErrUnexpectedEOF):
		return j.Line + bytes.Count(unread, newline), ErrTruncated
	}
	return j.Line, err
}

// readCanonical reads the next object if it need not be decoded, and is no list if isDocument is set.
func (j *jsonReader) readCanonical(isDocument bool) (e Entry, ok bool) {
	c := &j.canonical
	for range 2 {
		text := j.Buffered()
		end, ok, truncated := c.Read(text, 0)
		switch {
		case ok && isDocument && (c.hasItems || isList(c.Kind)):
			return e, false
		case ok:
			j.Consume(end)
			return c.entry(), true
		case !truncated || len(text) > peekSize/2 || j.Fill() != nil: // the error comes again
			return e, false
		}
	}
	return e, false
}

// readObject reads one object and yields it, or the items of a List.
func (j *jsonReader) readObject(l *list) error {
	if e, ok := j.readCanonical(true); ok {
		e.Position = l.Position
		return stoppedUnless(l.emit(e))
	}
	_, _ = j.Take('{') // it was seen
	size := 0
	closed, err := j.Take('}')
	for !closed && err == nil {
		if err = j.readMember(l, &size); err == nil {
			closed, err = j.Next('}')
		}
	}
	if err != nil {
		return err
	}
	return stoppedUnless(l.finish())
}

// readMember reads a field of an object. size is the size of the fields so far, without the items of a list.
func (j *jsonReader) readMember(l *list, size *int) error {
	name, err := j.Key()
	if err != nil {
		return err
	}
	line := j.Line
	if name == "items" {
		if isArray, err := j.Take('['); err != nil {
			return err
		} else if isArray {
			return j.readItems(l)
		}
	}
	value, valueLine, err := j.readValue()
	if err != nil {
		return err
	}
	if *size += len(value); *size > MaxDocument {
		return ErrTooLarge
	}
	if path, found := duplicateKey(value); found {
		l.noteDuplicate(name+"."+path, valueLine)
	}
	l.addField(name, bytes.Clone(value), line)
	return nil
}

var newline = []byte{'\n'}

// readValue returns the next value and its first line. Numbers out of range and deep nesting are not
// syntax errors here: the decoder of the object reports them.
func (j *jsonReader) readValue() (readValue []byte, line int, err error) {
	if _, err := j.Peek(); err != nil {
		return nil, 0, err
	}
	line = j.Line
	readValue, err = j.Value()
	var syntax *jsontext.SyntaxError
	if !errors.As(err, &syntax) {
		return readValue, line, err
	}
	decoder := json.NewDecoder(bytes.NewReader(j.Buffered()))
	if decoder.Decode((*json.RawMessage)(&readValue)) != nil {
		return nil, line, err
	}
	j.Consume(int(decoder.InputOffset()))
	return readValue, line, nil
}

func (j *jsonReader) readItems(l *list) error {
	l.beginItems()
	closed, err := j.Take(']')
	for !closed && err == nil {
		if err = j.readItem(l); err == nil {
			closed, err = j.Next(']')
		}
	}
	return err
}

func (j *jsonReader) readItem(l *list) error {
	next, err := j.Peek()
	if err != nil {
		return err
	}
	line := j.Line
	if next == '{' {
		if e, ok := j.readCanonical(false); ok {
			return stoppedUnless(l.addItem(line, e))
		}
	}
	data, line, err := j.readValue()
	if err != nil {
		return err
	}
	if next == '{' && len(data) > peekSize { // the buffer had only a part
		if _, ok, _ := j.canonical.Read(data, 0); ok {
			return stoppedUnless(l.addItem(line, j.canonical.entry()))
		}
	}
	e := entryOf(data)
	if path, found := duplicateKey(data); found {
		e = Entry{Err: duplicateError(path)}
	}
	return stoppedUnless(l.addItem(line, e))
}

func stoppedUnless(more bool) error {
	if more {
		return nil
	}
	return errStopped
}
