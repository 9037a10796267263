package manifest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

var byteOrderMark = []byte("\ufeff")

// peekSize is the size of the buffer that is searched for the start of a document.
const peekSize = 64 << 10

// documentReader reads documents one by one. Each can be JSON or YAML.
type documentReader struct {
	in           *bufio.Reader
	compressed   bool // in is decompressed data
	line         int  // line of the next byte
	document     int
	hasSeparator bool   // before the documents
	pendingLine  []byte // an unread line
	rest         []byte // the unread lines before the next \n
	yield        func(Entry) bool
	audit        auditLog
	collects     string // name of the type of untyped objects, if it is known
}

// newList returns a list for the document that begins at a line.
func (t *documentReader) newList(line int) *list {
	return &list{Position: Position{Line: line, Document: t.document}, yield: t.yield, audit: &t.audit,
		collects: t.collects}
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
	if t.pendingLine != nil || len(t.rest) > 0 {
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
		switch trimmed := bytes.TrimLeft(start, " \t\r\n"); {
		case len(trimmed) == 0:
		case trimmed[0] == '{', trimmed[0] == '[':
			return t.looksLikeJSON(), nil
		case bytes.HasPrefix(trimmed, byteOrderMark): // of a file, or of one that was appended
			start = start[:len(start)-len(trimmed)+len(byteOrderMark)]
		case bytes.HasPrefix(start, logStart) && bytes.HasSuffix(start, newline):
			start = bytes.Clone(start)
			_, _ = t.in.Discard(len(start)) // it is buffered
			t.line++
			if err := t.skipLog(start); err != nil {
				return false, err
			}
			continue
		case isSeparator(start) && isBareSeparator(start) && lineLength(start) == len(start):
			t.hasSeparator = true
		default:
			return false, nil
		}
		_, _ = t.in.Discard(len(start)) // it is buffered
		if start[len(start)-1] == '\n' {
			t.line++
		}
	}
}

// looksLikeJSON distinguishes JSON from the flow style of YAML, which rarely quotes keys. It is called
// before a brace or a bracket.
func (t *documentReader) looksLikeJSON() bool {
	isArray := false
	afterBrace := func(start []byte) []byte {
		start = bytes.TrimLeft(start, " \t\r\n")
		if isArray = start[0] == '['; isArray {
			if start = bytes.TrimLeft(start[1:], " \t\r\n"); len(start) == 0 || start[0] != '{' {
				return start
			}
		}
		return bytes.TrimLeft(start[1:], " \t\r\n")
	}
	start, _ := t.peek(func(start []byte) bool { return len(afterBrace(start)) > 0 })
	rest := afterBrace(start)
	if len(rest) == 0 {
		return !isArray
	}
	return rest[0] == '"' || rest[0] == '}' || isArray && rest[0] == ']'
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

// readLine returns the next line with a line break, or with the rest of the text. It replaces "\r\n" by "\n",
// as kubectl does. The error is io.EOF if there is no line.
func (t *documentReader) readLine() (line []byte, err error) {
	if line, t.pendingLine = t.pendingLine, nil; line == nil {
		if len(t.rest) == 0 {
			if t.rest, err = t.readPhysicalLine(); err != nil {
				return nil, err
			}
		}
		length := lineLength(t.rest)
		line, t.rest = t.rest[:length:length], t.rest[length:]
	}
	t.line++
	if cut, ok := bytes.CutSuffix(line, []byte("\r\n")); ok {
		line = append(cut, '\n')
	}
	return line, nil
}

// readPhysicalLine returns the text up to the next \n.
func (t *documentReader) readPhysicalLine() (line []byte, err error) {
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
		return line, nil
	}
}

// lineLength returns the length of the first line of a text with its line break. The line breaks are those of
// the YAML parser: \n, \r, \r\n, U+0085, U+2028 and U+2029.
func lineLength(text []byte) int {
	length := len(text)
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		length = i + 1
	}
	if i := bytes.IndexByte(text[:length], '\r'); i >= 0 && i+2 != length {
		length = i + 1
	}
	for _, lineBreak := range []string{"\u0085", "\u2028", "\u2029"} {
		if i := bytes.Index(text[:length], []byte(lineBreak)); i >= 0 {
			length = i + len(lineBreak)
		}
	}
	return length
}

// utf8Text converts UTF-16 with a byte order mark. It returns any other text unchanged.
func utf8Text(in *bufio.Reader) *bufio.Reader {
	switch mark, _ := in.Peek(2); string(mark) { // a failed read fails again
	case "\xff\xfe":
		return bufio.NewReaderSize(&utf16Reader{in: in, order: binary.LittleEndian}, peekSize)
	case "\xfe\xff":
		return bufio.NewReaderSize(&utf16Reader{in: in, order: binary.BigEndian}, peekSize)
	}
	return in
}

// utf16Reader converts UTF-16, as PowerShell writes it, to UTF-8.
type utf16Reader struct {
	in    *bufio.Reader
	order binary.ByteOrder
	buf   [utf8.UTFMax]byte
	rest  []byte // of the character in buf
}

// Read implements io.Reader. It returns one character, or a part of it.
func (r *utf16Reader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		units, err := r.in.Peek(4) // the longest character
		if len(units) == 0 || err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		c, size := rune(-1), 2
		if len(units) >= 2 {
			c = rune(r.order.Uint16(units))
		}
		if utf16.IsSurrogate(c) && len(units) == 4 {
			if low := rune(r.order.Uint16(units[2:])); utf16.DecodeRune(c, low) != utf8.RuneError {
				c, size = utf16.DecodeRune(c, low), 4
			}
		}
		if !utf8.ValidRune(c) {
			return 0, errors.New("the text is not valid UTF-16: convert it to UTF-8")
		}
		_, _ = r.in.Discard(size) // both are buffered
		r.rest = utf8.AppendRune(r.buf[:0], c)
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// binaryFormats are formats that are not read, by the bytes at an offset.
var binaryFormats = []struct {
	offset int
	magic  string
	name   string
}{
	{0, "\xfd7zXZ\x00", "an xz file: unpack it"},
	{0, "BZh", "a bzip2 file: unpack it"},
	{0, "7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it"},
	{0, "Rar!\x1a\x07", "a RAR archive: unpack it"},
	{0, "\x04\x22\x4d\x18", "an lz4 file: unpack it"},
	{16, "\xed\xda\x0c\xed", "an etcd database: start an API server with it, and read that"},
	{0, "SQLite format 3\x00", "an SQLite database"},
	{0, "\x93CRDSNAP", "a snapshot: read it with --from"},
	{0, "k8s\x00", "an object in Protobuf: write it as JSON"},
}

// binaryError returns an error if data is not a text.
func binaryError(head []byte) error {
	for _, format := range binaryFormats {
		if len(head) > format.offset && bytes.HasPrefix(head[format.offset:], []byte(format.magic)) {
			return fmt.Errorf("this is %s", format.name)
		}
	}
	switch nul := bytes.IndexByte(head, 0); {
	case nul < 0, bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return nil
	case len(bytes.TrimLeft(head, "\x00")) == 0:
		return fmt.Errorf("this has only zero bytes: it is damaged, or an archive without files")
	case nul < 2 && len(head) > 3 && head[nul+2] == 0:
		return fmt.Errorf("this is UTF-16 without a byte order mark: convert it to UTF-8")
	}
	return fmt.Errorf("this is a binary file")
}
