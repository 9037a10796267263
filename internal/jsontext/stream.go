package jsontext

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
)

// initialBufferSize is the initial size of a Stream's buffer.
const initialBufferSize = 64 << 10

// ErrTooLarge is returned for a value that is larger than Stream.MaxValue.
var ErrTooLarge = errors.New("the value is too large")

// Stream reads the values of a document one by one, with only one of them in memory.
type Stream struct {
	// Line is the number of the line of the next byte, ContentLine that of the last consumed byte that is not
	// white space. The first line is 0, unless the caller sets another number.
	Line, ContentLine int
	// MaxValue limits the size of a value in bytes, approximately. Zero means no limit.
	MaxValue int

	source io.Reader
	data   []byte // unread data, starting at offset
	offset int
	err    error // of source
}

// NewStream returns a stream of the text of source.
func NewStream(source io.Reader) *Stream {
	return &Stream{source: source, data: make([]byte, 0, initialBufferSize)}
}

// Reset makes s a stream of another source, with the same buffer.
func (s *Stream) Reset(source io.Reader) { *s = Stream{source: source, data: s.data[:0]} }

// Ended reports whether the source has no more text.
func (s *Stream) Ended() bool { return errors.Is(s.err, io.EOF) }

// SourceError returns the error of the source, nil at the end of the text.
func (s *Stream) SourceError() error {
	if s.Ended() {
		return nil
	}
	return s.err
}

// Peek returns the next byte that is not white space. At the end of the text it returns io.ErrUnexpectedEOF.
func (s *Stream) Peek() (byte, error) {
	for {
		if s.advance(SkipSpace(s.data, s.offset)); s.offset < len(s.data) {
			return s.data[s.offset], nil
		}
		if err := s.Fill(); err != nil {
			return 0, err
		}
	}
}

// Take consumes the next byte if it is c.
func (s *Stream) Take(c byte) (bool, error) {
	next, err := s.Peek()
	if err != nil || next != c {
		return false, err
	}
	s.offset++
	s.ContentLine = s.Line
	return true, nil
}

// Key consumes the key of a member, and the colon after it.
func (s *Stream) Key() (string, error) {
	if c, err := s.Peek(); err != nil || c != '"' {
		return "", cmp.Or(err, s.unexpected())
	}
	text, err := s.Value()
	if err != nil {
		return "", err
	}
	key := string(AppendUnescaped(nil, text[1:len(text)-1]))
	if found, err := s.Take(':'); !found {
		return "", cmp.Or(err, s.unexpected())
	}
	return key, nil
}

// Next consumes the comma after a member or element, or the closing bracket.
func (s *Stream) Next(closing byte) (closed bool, err error) {
	for _, c := range []byte{',', closing} {
		if found, err := s.Take(c); found || err != nil {
			return c == closing, err
		}
	}
	return false, s.unexpected()
}

func (s *Stream) unexpected() error { return &SyntaxError{Reason: "an unexpected character"} }

// advance consumes the text up to an offset.
func (s *Stream) advance(to int) {
	s.Line += bytes.Count(s.data[s.offset:to], []byte{'\n'})
	s.offset = to
}

// Buffered returns the text that was read from the source and not consumed.
func (s *Stream) Buffered() []byte { return s.data[s.offset:] }

// Consume consumes n bytes of Buffered that end with other text than white space.
func (s *Stream) Consume(n int) {
	s.advance(s.offset + n)
	s.ContentLine = s.Line
}

// Rest returns the text that was not consumed. The stream must not be used any more.
func (s *Stream) Rest() io.Reader { return io.MultiReader(bytes.NewReader(s.Buffered()), s.source) }

// Value consumes the next value. The result is valid until the next call. The error is a *SyntaxError with an
// offset in Buffered, io.ErrUnexpectedEOF, ErrTooLarge, or that of the source.
func (s *Stream) Value() ([]byte, error) {
	if _, err := s.Peek(); err != nil {
		return nil, err
	}
	for {
		end, ok, more := SkipValue(s.data, s.offset)
		if ok {
			text := s.data[s.offset:end]
			s.Consume(len(text))
			return text, nil
		}
		if !more {
			end, _ := Skip(s.data, s.offset, maxLevels)
			return nil, &SyntaxError{Offset: ^end - s.offset, Reason: SkipProblem(s.data, ^end)}
		}
		if err := s.Fill(); err != nil {
			return nil, err
		}
	}
}

// Fill fills the buffer, as far as there is text. The buffer doubles when one value fills it, so that the
// total time is linear, although a value is scanned again after each Fill.
func (s *Stream) Fill() error {
	s.data = s.data[:copy(s.data, s.data[s.offset:])]
	s.offset = 0
	if s.MaxValue > 0 && len(s.data) > s.MaxValue {
		s.err = ErrTooLarge
	} else if len(s.data) == cap(s.data) {
		s.data = slices.Grow(s.data, cap(s.data))
	}
	before := len(s.data)
	for s.err == nil && len(s.data) < cap(s.data) {
		var n int
		n, s.err = s.source.Read(s.data[len(s.data):cap(s.data)])
		s.data = s.data[:len(s.data)+n]
	}
	switch {
	case len(s.data) > before: // the error follows the text
		return nil
	case s.Ended():
		return io.ErrUnexpectedEOF
	}
	return s.err
}
