package manifest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

var byteOrderMark = []byte("\ufeff")

// utf8Text converts a text that begins with the byte order mark of UTF-16, as PowerShell writes it. It
// returns any other text unchanged.
func utf8Text(in *bufio.Reader) *bufio.Reader {
	mark, _ := in.Peek(2) // a failed read fails again
	switch string(mark) {
	case "\xff\xfe":
		return bufio.NewReaderSize(&utf16Reader{in: in, order: binary.LittleEndian}, peekSize)
	case "\xfe\xff":
		return bufio.NewReaderSize(&utf16Reader{in: in, order: binary.BigEndian}, peekSize)
	}
	return in
}

type utf16Reader struct {
	in    *bufio.Reader
	order binary.ByteOrder
	buf   [utf8.UTFMax]byte
	rest  []byte // of buf
	err   error
}

var errInvalidUTF16 = errors.New("the text is not valid UTF-16: convert it to UTF-8")

// Read implements io.Reader.
func (r *utf16Reader) Read(p []byte) (n int, err error) {
	n = copy(p, r.rest)
	r.rest = r.rest[n:]
	for r.err == nil && n < len(p) && (n == 0 || r.in.Buffered() >= 4) {
		var c rune
		if c, r.err = r.next(); r.err == nil {
			r.rest = r.buf[:utf8.EncodeRune(r.buf[:], c)]
			copied := copy(p[n:], r.rest)
			n, r.rest = n+copied, r.rest[copied:]
		}
	}
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, r.err
}

// next returns the next character.
func (r *utf16Reader) next() (rune, error) {
	var unit [2]byte
	read := func() (rune, error) {
		_, err := io.ReadFull(r.in, unit[:])
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errInvalidUTF16
		}
		return rune(r.order.Uint16(unit[:])), err
	}
	c, err := read()
	if err != nil || !utf16.IsSurrogate(c) {
		return c, err
	}
	low, err := read()
	if c = utf16.DecodeRune(c, low); errors.Is(err, io.EOF) || err == nil && c == utf8.RuneError {
		err = errInvalidUTF16
	}
	return c, err
}
