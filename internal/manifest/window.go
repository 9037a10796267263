package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// minWindow is how much of a stream is in memory at first.
const minWindow = 64 << 10

// examined is told how many bytes are looked at, for the test that this is linear in the bytes of a text.
var examined = func(bytes int) {}

// window is the part of a stream that is in memory: what has not been used up yet. Offsets in it are counted from the
// mark, because reading moves it.
type window struct {
	source io.Reader
	data   []byte
	mark   int // data from here on stays
	pos    int // what comes next
	// line is the line at counted, an offset in data. It only goes forward, so that each byte is looked at once.
	line, counted int
	failure       error // of the source, for after what has been read
}

// lineAt returns the line of an offset in data. What has been counted is not counted again: an offset before that has
// the line of where counting is.
func (w *window) lineAt(at int) int {
	if at > w.counted {
		examined(at - w.counted)
		w.line += bytes.Count(w.data[w.counted:at], []byte("\n"))
		w.counted = at
	}
	return w.line
}

// since is the text from the mark up to pos.
func (w *window) since() []byte { return w.data[w.mark:w.pos:w.pos] }

// grow reads more behind what there is. At the end of the source it returns io.EOF.
func (w *window) grow() error {
	if w.failure != nil {
		return w.failure
	}
	if w.mark > 0 {
		w.lineAt(w.mark)
		n := copy(w.data, w.data[w.mark:])
		w.data = w.data[:n]
		w.pos, w.counted, w.mark = w.pos-w.mark, w.counted-w.mark, 0
	}
	if len(w.data) == cap(w.data) {
		if len(w.data) >= MaxDocument {
			w.failure = ErrTooLarge
			return w.failure
		}
		w.data = append(make([]byte, 0, max(minWindow, 2*cap(w.data))), w.data...)
	}
	// A value that is there in part is scanned again, so of a large one a third must be new, or scanning is not linear;
	// a small one that is complete must not wait for what a pipe delivers later.
	before := len(w.data)
	for len(w.data) == before || before >= minWindow && len(w.data) < before+before/2 && len(w.data) < cap(w.data) {
		n, err := w.source.Read(w.data[len(w.data):cap(w.data)])
		w.data = w.data[:len(w.data)+n]
		if err != nil {
			w.failure = err
			if len(w.data) > before {
				return nil
			}
			return err
		}
	}
	return nil
}

// next skips white space and returns the byte at pos.
func (w *window) next() (byte, error) {
	for {
		for w.pos < len(w.data) && isSpace(w.data[w.pos]) {
			w.pos++
		}
		if w.pos < len(w.data) {
			return w.data[w.pos], nil
		}
		if err := w.grow(); err != nil {
			return 0, err
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// skip moves pos behind the value at pos.
func (w *window) skip() error {
	for {
		end, ok, more := jsontext.SkipValue(w.data, w.pos)
		switch {
		case ok:
			examined(end - w.pos)
			w.pos = end
			return nil
		case !more:
			return w.skipUnusual()
		}
		examined(len(w.data) - w.pos)
		if err := w.grow(); err != nil {
			if errors.Is(err, io.EOF) {
				return w.skipUnusual() // a number may end with the text
			}
			return err
		}
	}
}

// skipUnusual is skip for what is valid though seldom, such as deep nesting, and says what is wrong with anything else.
func (w *window) skipUnusual() error {
	decoder := json.NewDecoder(&windowReader{w, w.pos - w.mark})
	var value json.RawMessage
	err := decoder.Decode(&value)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		w.pos += int(decoder.InputOffset())
	case errors.As(err, &syntax):
		w.pos = min(w.pos+max(int(syntax.Offset)-1, 0), len(w.data))
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return err
}

// windowReader reads what is in a window and then more.
type windowReader struct {
	w  *window
	at int // from the mark
}

// Read implements io.Reader.
func (r *windowReader) Read(p []byte) (int, error) {
	if r.w.mark+r.at == len(r.w.data) {
		if err := r.w.grow(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.w.data[r.w.mark+r.at:])
	r.at += n
	return n, nil
}
