package offline

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// jsonReader reads JSON objects that follow each other, with or without the separators of YAML between them.
type jsonReader struct {
	in      *bufio.Reader
	counter *lineCounter
	yield   func(entry) bool

	base     int64 // where in the stream the decoder began
	document int
}

func (j *jsonReader) run() error {
	for {
		more, err := j.skip()
		if err != nil || !more {
			return err
		}
		next, _ := j.in.Peek(len(logStart))
		if isLogStart(next) {
			if err := j.pastLog(); err != nil {
				return err
			}
			continue
		}
		if next[0] != '{' {
			// What follows JSON can be YAML.
			rest := &yamlReader{in: j.in, yield: j.yield, line: j.counter.at(j.base) - 1, document: j.document}
			j.counter.idle = true
			return rest.run()
		}
		if ok, err := j.objects(json.NewDecoder(j.in)); err != nil || !ok {
			return err
		}
	}
}

// pastLog reads a log to its end.
func (j *jsonReader) pastLog() error {
	start := j.counter.at(j.base)
	first, err := j.in.ReadSlice('\n')
	end := endOfLog(first) // before the next read
	read := func(size int, _ bool) {
		j.base += int64(size)
		j.counter.at(j.base) // however long the log is
	}
	read(len(first), true)
	if err == nil || errors.Is(err, bufio.ErrBufferFull) {
		err = skipLog(j.in, end, read)
	}
	if errors.Is(err, io.EOF) {
		j.yield(entry{place: place{line: start, document: j.document + 1}, err: errOpenLog}) // nothing comes that could be stopped
		return nil
	}
	return err
}

// objects reads objects until something other than white space stands between them, and goes back to where that
// begins.
func (j *jsonReader) objects(decoder *json.Decoder) (bool, error) {
	for gap := int64(0); ; {
		j.document++
		ok, err := j.object(decoder, gap)
		if err != nil {
			return false, j.fail(decoder, err)
		}
		if !ok {
			return false, nil
		}
		var next byte
		switch gap, next = ahead(decoder); next {
		case '{':
			continue
		case 0: // what follows has not been read yet
			j.base += decoder.InputOffset() + gap
		default:
			j.base += decoder.InputOffset()
			j.in = bufio.NewReaderSize(io.MultiReader(decoder.Buffered(), j.in), 1<<16)
		}
		return true, nil
	}
}

// ahead counts the white space that a decoder has read and not used, and returns the byte after it; 0 when there is
// none.
func ahead(decoder *json.Decoder) (gap int64, next byte) {
	buffered, ok := decoder.Buffered().(io.ByteReader)
	for ; ok; gap++ {
		c, err := buffered.ReadByte()
		if err != nil {
			return gap, 0
		}
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return gap, c
		}
	}
	return 0, '?' // the decoder is another one than it was
}

// skip passes over white space and separators, and reports whether anything follows.
func (j *jsonReader) skip() (bool, error) {
	for {
		next, err := j.in.Peek(3)
		if len(next) == 0 {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return false, err
		}
		n := 1
		switch {
		case bytes.Equal(next, []byte("---")):
			n = 3
		case bytes.HasPrefix(next, []byte("\xef\xbb\xbf")):
			n = 3 // a byte order mark
		case !bytes.ContainsAny(next[:1], " \t\r\n"):
			return true, nil
		}
		_, _ = j.in.Discard(n) // it was there a moment ago
		j.base += int64(n)
	}
}

// object reads one document, which begins gap bytes ahead of the decoder.
func (j *jsonReader) object(decoder *json.Decoder, gap int64) (bool, error) {
	g := &gatherer{yield: j.yield}
	g.document, g.line = j.document, j.counter.at(j.base+decoder.InputOffset()+gap)
	if _, err := decoder.Token(); err != nil {
		return false, err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return false, err
		}
		if key == "items" {
			ok, err := j.items(decoder, g)
			if err != nil || !ok {
				return false, err
			}
			continue
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return false, err
		}
		g.field(key.(string), value) // keys are strings
	}
	if _, err := decoder.Token(); err != nil {
		return false, err
	}
	return g.end(), nil
}

// items reads the value of a field of that name, which may be something else than an array.
func (j *jsonReader) items(decoder *json.Decoder, g *gatherer) (bool, error) {
	token, err := decoder.Token()
	switch {
	case err != nil:
		return false, err
	case token == nil:
		g.listed = true
		return true, nil
	case token != json.Delim('['):
		return false, errors.New("items is no array")
	}
	g.listed = true
	for decoder.More() {
		var item json.RawMessage
		if err := decoder.Decode(&item); err != nil {
			return false, err
		}
		if !g.item(j.line(decoder), item, nil) {
			return false, nil
		}
	}
	_, err = decoder.Token()
	return true, err
}

// line is where the decoder is.
func (j *jsonReader) line(decoder *json.Decoder) int {
	return j.counter.at(j.base + decoder.InputOffset())
}

// fail yields an error of syntax, behind which nothing can be read; others are returned.
func (j *jsonReader) fail(decoder *json.Decoder, err error) error {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), err.Error() == "items is no array":
	default:
		return err
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	j.yield(entry{place: place{line: j.lineAhead(decoder), document: j.document}, err: fmt.Errorf("not valid JSON: %w", err)})
	return nil
}

// lineAhead is where the value begins that the decoder is at.
func (j *jsonReader) lineAhead(decoder *json.Decoder) int {
	ahead, err := io.ReadAll(decoder.Buffered())
	if err != nil {
		return j.line(decoder) // which cannot be: it is in memory
	}
	gap := len(ahead) - len(bytes.TrimLeft(ahead, " \t\r\n:,"))
	if gap == len(ahead) {
		gap = 0 // nothing follows
	}
	return j.counter.at(j.base + decoder.InputOffset() + int64(gap))
}
