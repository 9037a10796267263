package manifest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// decodeUTF16 gives UTF-8 where a text begins with the mark of UTF-16, as what PowerShell redirects into a file does.
// Any other text stays as it is.
func decodeUTF16(r io.Reader) io.Reader {
	in := bufio.NewReader(r)
	mark, _ := in.Peek(2) // what goes wrong goes wrong again
	var order binary.ByteOrder
	switch string(mark) {
	case "\xff\xfe":
		order = binary.LittleEndian
	case "\xfe\xff":
		order = binary.BigEndian
	default:
		return in
	}
	_, _ = in.Discard(len(mark)) // it was there a moment ago
	return &utf16Reader{in: in, order: order}
}

// utf16Reader reads UTF-16 and gives UTF-8, with replacement characters for what is no text.
type utf16Reader struct {
	in    *bufio.Reader
	order binary.ByteOrder
	ahead rune // a character that was read too early, or 0
	text  []byte
	room  [utf8.UTFMax]byte
}

// Read implements io.Reader.
func (u *utf16Reader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(u.text) == 0 {
			if n > 0 && u.in.Buffered() < 2 {
				return n, nil // what follows may take its time
			}
			c, err := u.next()
			if err != nil {
				return n, err
			}
			u.text = utf8.AppendRune(u.room[:0], c)
		}
		copied := copy(p[n:], u.text)
		u.text, n = u.text[copied:], n+copied
	}
	return n, nil
}

// next reads one character.
func (u *utf16Reader) next() (rune, error) {
	c := u.ahead
	u.ahead = 0
	if c == 0 {
		var err error
		if c, err = u.unit(); err != nil {
			return 0, err
		}
	}
	if !utf16.IsSurrogate(c) {
		return c, nil
	}
	second, err := u.unit()
	if errors.Is(err, io.EOF) {
		return utf8.RuneError, nil
	}
	if err != nil {
		return 0, err
	}
	if both := utf16.DecodeRune(c, second); both != utf8.RuneError {
		return both, nil
	}
	u.ahead = second
	return utf8.RuneError, nil
}

// unit reads two bytes. One that is left over is a character, though no good one.
func (u *utf16Reader) unit() (rune, error) {
	var two [2]byte
	switch _, err := io.ReadFull(u.in, two[:]); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return utf8.RuneError, nil
	case err != nil:
		return 0, err
	}
	return rune(u.order.Uint16(two[:])), nil
}
