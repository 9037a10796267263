package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// jsonReader reads JSON objects that follow each other, with or without the separators of YAML between them.
type jsonReader struct {
	window
	yield    func(Entry) bool
	document int
	members  []member // of the object that is being read
}

// member is a member of an object: where its key, with quotes, and its value are, from the mark.
type member struct{ key, colon, value, end int }

// errStopped says that nobody wants more.
var errStopped = errors.New("stopped")

// syntaxError is one that is found here rather than by encoding/json, and worded as there.
type syntaxError struct{ text string }

func (e *syntaxError) Error() string { return e.text }

func invalid(c byte, where string) error {
	return &syntaxError{fmt.Sprintf("invalid character %q %s", rune(c), where)}
}

// run reads to the end.
func (j *jsonReader) run() error {
	for {
		more, err := j.separators()
		if err != nil || !more {
			return err
		}
		switch {
		case bytes.HasPrefix(j.data[j.pos:], []byte(logStart)):
			err = j.pastLog()
		case j.data[j.pos] != '{':
			return j.leave(nil) // what follows JSON can be YAML
		default:
			err = j.one()
		}
		if errors.Is(err, errStopped) {
			return nil
		}
		if err != nil {
			return j.fail(err)
		}
	}
}

// separators passes over white space and separators, and reports whether anything follows.
func (j *jsonReader) separators() (bool, error) {
	for {
		j.mark = j.pos
		c, err := j.next()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		for c != '{' && len(j.data)-j.pos < len(logStart) && j.grow() == nil { // as far as it can be told what it is
		}
		rest := j.data[j.pos:]
		switch {
		case bytes.HasPrefix(rest, []byte("---")), bytes.HasPrefix(rest, []byte("\xef\xbb\xbf")): // a byte order mark
			j.pos += 3
		default:
			j.mark = j.pos
			return true, nil
		}
	}
}

// pastLog reads a log to its end.
func (j *jsonReader) pastLog() error {
	start := j.lineAt(j.pos)
	rest := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(bytes.Clone(j.data[j.pos:])), j.unread()), minWindow)
	j.data, j.mark, j.pos, j.counted = j.data[:0], 0, 0, 0
	first, err := rest.ReadSlice('\n')
	end := endOfLog(first) // before the next read
	count := func(_ int, line bool) {
		if line {
			j.line++
		}
	}
	count(0, err == nil)
	if err == nil || errors.Is(err, bufio.ErrBufferFull) {
		err = skipLog(rest, end, count)
	}
	j.source, j.failure = rest, nil
	if errors.Is(err, io.EOF) {
		j.yield(Entry{Place: Place{Line: start, Document: j.document + 1}, Err: errOpenLog}) // nothing comes that could be stopped
		return errStopped
	}
	return err
}

// unread is what the source still has.
func (j *jsonReader) unread() io.Reader {
	if j.failure != nil {
		return failed{j.failure}
	}
	return j.source
}

// failed is a source that has failed already.
type failed struct{ err error }

// Read implements io.Reader.
func (f failed) Read([]byte) (int, error) { return 0, f.err }

// leave gives the rest of the stream, from the mark on, to the reader of YAML. What is not good YAML either has the
// error why.
func (j *jsonReader) leave(why *Entry) error {
	rest := io.MultiReader(bytes.NewReader(j.data[j.mark:]), j.unread())
	line := j.line - bytes.Count(j.data[min(j.mark, j.counted):j.counted], []byte("\n"))
	if j.counted < j.mark {
		line = j.lineAt(j.mark)
	}
	document := j.document
	if why != nil {
		document--
	}
	return (&yamlReader{in: bufio.NewReaderSize(rest, minWindow), yield: j.yield, line: line - 1, document: document, instead: why}).run()
}

// one reads one document.
func (j *jsonReader) one() error {
	j.document++
	place := Place{Line: j.lineAt(j.pos), Document: j.document}
	l := &list{Place: place, yield: j.yield}
	if err := j.object(l); err != nil {
		if l.streams || !isSyntax(err) {
			return err
		}
		if err := j.leave(j.problem(err)); err != nil {
			return err
		}
		return errStopped
	}
	if l.streams {
		return stoppedUnless(l.end())
	}
	e := Entry{Place: place, Data: j.since()}
	e.take(j.identity())
	if !j.has("apiVersion") || !j.has("kind") {
		if len(j.members) == 0 {
			return nil
		}
		e = Entry{Place: place, Err: ErrNoKind}
	}
	if items := j.member("items"); items != nil && isList(e.Kind) {
		if string(items) == "null" {
			return nil
		}
		e = Entry{Place: place, Err: errors.New("not valid JSON: items is no array")}
	}
	return stoppedUnless(j.yield(e))
}

func stoppedUnless(more bool) error {
	if more {
		return nil
	}
	return errStopped
}

// object reads the object at the mark into members; with l, up to its items, which go there one by one.
func (j *jsonReader) object(l *list) error {
	j.members = j.members[:0]
	j.pos++
	c, err := j.next()
	if err != nil {
		return atEnd(err)
	}
	if c == '}' {
		j.pos++
		return nil
	}
	for {
		if err := j.pair(l); err != nil {
			return err
		}
		c, err := j.next()
		if err != nil {
			return atEnd(err)
		}
		switch c {
		case '}':
			j.pos++
			return nil
		case ',':
			j.pos++
			if _, err := j.next(); err != nil {
				return atEnd(err)
			}
		default:
			return invalid(c, "after object key:value pair")
		}
	}
}

// pair reads a key and its value.
func (j *jsonReader) pair(l *list) error {
	if j.data[j.pos] != '"' {
		return invalid(j.data[j.pos], "looking for beginning of object key string")
	}
	m := member{key: j.pos - j.mark}
	if err := j.skip(); err != nil {
		return err
	}
	m.colon = j.pos - j.mark
	c, err := j.next()
	if err != nil {
		return atEnd(err)
	}
	if c != ':' {
		return invalid(c, "after object key")
	}
	j.pos++
	if c, err = j.next(); err != nil {
		return atEnd(err)
	}
	if l != nil && c == '[' && isKey(j.data[j.mark+m.key:j.mark+m.colon], "items") {
		return j.items(l)
	}
	m.value = j.pos - j.mark
	if err := j.skip(); err != nil {
		return err
	}
	m.end = j.pos - j.mark
	j.members = append(j.members, m)
	if l != nil && l.streams {
		l.field(textOf(j.data[j.mark+m.key:j.mark+m.colon]), bytes.Clone(j.data[j.mark+m.value:j.pos]))
		j.members, j.mark = j.members[:0], j.pos
	}
	return nil
}

// items reads an array whose elements may be objects.
func (j *jsonReader) items(l *list) error {
	if l.streams {
		l.twice = true
	}
	l.streams = true
	for _, m := range j.members {
		l.field(textOf(j.data[j.mark+m.key:j.mark+m.colon]), bytes.Clone(j.data[j.mark+m.value:j.mark+m.end]))
	}
	j.pos++
	c, err := j.next()
	for first := true; err == nil; first = false {
		switch {
		case first && c == ']':
		case !first && c != ',' && c != ']':
			return invalid(c, "after array element")
		case !first && c == ',':
			j.pos++
			if c, err = j.next(); err != nil {
				return atEnd(err)
			}
		}
		if c == ']' {
			j.pos++
			j.members, j.mark = j.members[:0], j.pos
			return nil
		}
		if err := j.item(l, c); err != nil {
			return err
		}
		c, err = j.next()
	}
	return atEnd(err)
}

// item reads one element of the items, which begins with c.
func (j *jsonReader) item(l *list, c byte) error {
	j.mark = j.pos
	line := j.lineAt(j.pos)
	var own identity
	if c == '{' {
		if err := j.object(nil); err != nil {
			return err
		}
		own = j.identity()
	} else if err := j.skip(); err != nil {
		return err
	}
	more := l.item(line, j.since(), own, nil)
	j.members, j.mark = j.members[:0], j.pos
	return stoppedUnless(more)
}

// member returns the value of a member, or nil where there is none. Of several the last one counts.
func (j *jsonReader) member(name string) []byte {
	for _, m := range slices.Backward(j.members) {
		if isKey(j.data[j.mark+m.key:j.mark+m.colon], name) {
			return j.data[j.mark+m.value : j.mark+m.end]
		}
	}
	return nil
}

func (j *jsonReader) identity() identity {
	return identityOf(j.member("apiVersion"), j.member("kind"), j.member("metadata"))
}

func (j *jsonReader) has(name string) bool {
	value := j.member(name)
	return value != nil && string(value) != `""` && string(value) != "null"
}

// isKey reports whether a key in JSON is that name.
func isKey(key []byte, name string) bool {
	if len(key) == len(name)+2 && string(key[1:len(key)-1]) == name {
		return true
	}
	return bytes.IndexByte(key, '\\') >= 0 && textOf(key) == name
}

// textOf returns a string of JSON, or "" for what is none.
func textOf(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1])
	}
	var text string
	_ = json.Unmarshal(value, &text) // it has been scanned
	return text
}

// atEnd is the error for a text that ends within an object.
func atEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// isSyntax reports whether an error is one of the text rather than of reading it.
func isSyntax(err error) bool {
	var own *syntaxError
	var stock *json.SyntaxError
	return errors.As(err, &own) || errors.As(err, &stock) || errors.Is(err, io.ErrUnexpectedEOF)
}

// problem says where and why the document is no JSON.
func (j *jsonReader) problem(err error) *Entry {
	at := min(j.pos, len(j.data))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		at = len(bytes.TrimRight(j.data, " \t\r\n"))
	}
	line := j.lineAt(max(at, j.mark))
	return &Entry{Place: Place{Line: line, Document: j.document}, Err: fmt.Errorf("not valid JSON: %w", err)}
}

// fail yields an error of syntax, behind which nothing can be read; others are returned.
func (j *jsonReader) fail(err error) error {
	if !isSyntax(err) {
		return err
	}
	j.yield(*j.problem(err))
	return nil
}
