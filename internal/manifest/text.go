package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// peekSize is the size of the buffer that is searched for the start of a document.
const peekSize = 64 << 10

// documentReader reads documents one by one. Each can be JSON or YAML.
type documentReader struct {
	in          *bufio.Reader
	compressed  bool // in is decompressed data
	line        int  // line of the next byte
	document    int
	pendingLine []byte // an unread line
	yield       func(Entry) bool
}

// readDocument reads one document. It returns false at the end of the text, or if yield returned false.
func (t *documentReader) readDocument() (more bool, err error) {
	isJSON, err := t.skipToDocument()
	switch {
	case errors.Is(err, io.EOF):
		return false, nil
	case err != nil:
		return false, err
	case isJSON:
		return t.readJSON()
	}
	return t.readYAML()
}

// skipToDocument skips blank lines and bare separators, and reports whether a JSON document follows. The
// error is io.EOF at the end of the text.
func (t *documentReader) skipToDocument() (isJSON bool, err error) {
	if t.pendingLine != nil {
		return false, nil
	}
	for {
		start, err := t.peek(func(start []byte) bool { return bytes.IndexByte(start, '\n') >= 0 })
		if len(start) == 0 {
			return false, err
		}
		if end := bytes.IndexByte(start, '\n'); end >= 0 {
			start = start[:end+1]
		}
		switch trimmed := bytes.TrimSpace(start); {
		case len(trimmed) > 0 && trimmed[0] == '{':
			return t.looksLikeJSON(), nil
		case len(trimmed) > 0 && !(isSeparator(start) && isBareSeparator(start)):
			return false, nil
		}
		_, _ = t.in.Discard(len(start)) // it is buffered
		if start[len(start)-1] == '\n' {
			t.line++
		}
	}
}

// looksLikeJSON distinguishes JSON from the flow style of YAML, which rarely quotes keys. It is called
// before a brace.
func (t *documentReader) looksLikeJSON() bool {
	afterBrace := func(start []byte) []byte {
		return bytes.TrimLeft(bytes.TrimLeft(start, " \t\r\n")[1:], " \t\r\n")
	}
	start, _ := t.peek(func(start []byte) bool { return len(afterBrace(start)) > 0 })
	rest := afterBrace(start)
	return len(rest) == 0 || rest[0] == '"' || rest[0] == '}'
}

// peek returns the buffered text as soon as enough accepts it, or all available text.
func (t *documentReader) peek(enough func([]byte) bool) ([]byte, error) {
	for n := max(1, t.in.Buffered()); ; n = max(n+1, t.in.Buffered()) {
		start, err := t.in.Peek(min(n, peekSize))
		if err != nil || n >= peekSize || enough(start) {
			return start, err
		}
	}
}

func (t *documentReader) unreadLine(line []byte) {
	t.pendingLine = bytes.Clone(line)
	t.line--
}

// readLine returns the next line with a newline, or with the rest of the text. It replaces "\r\n" by "\n",
// as kubectl does. The error is io.EOF if there is no line.
func (t *documentReader) readLine() ([]byte, error) {
	if line := t.pendingLine; line != nil {
		t.pendingLine = nil
		t.line++
		return line, nil
	}
	var line []byte
	for {
		part, err := t.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > MaxDocument:
			return nil, ErrTooLarge
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !(errors.Is(err, io.EOF) && len(line) > 0):
			return nil, err
		}
		t.line++
		if cut, ok := bytes.CutSuffix(line, []byte("\r\n")); ok {
			line = append(cut, '\n')
		}
		return line, nil
	}
}
