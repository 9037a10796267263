package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// AnswerReader reads an Answer without loading all of its objects or rows.
type AnswerReader struct {
	// Answer has no Items and no Rows. Each returns them.
	Answer

	stream *jsontext.Stream
	// open is set while objects or rows remain.
	open bool
}

// ReadAnswer reads an answer up to the first object or row.
func ReadAnswer(source io.Reader) (*AnswerReader, error) {
	r := &AnswerReader{stream: jsontext.NewStream(source)}
	head, err := r.head()
	if err == nil {
		err = json.Unmarshal(head, &r.Answer)
	}
	if err == nil && r.Kind != AnswerKind {
		err = errNoAnswer
	}
	if err != nil {
		return nil, fmt.Errorf("reading an answer: %w", err)
	}
	return r, nil
}

var errNoAnswer = errors.New("the text is no answer to a query")

// head returns the fields before the objects or rows as a JSON object.
func (r *AnswerReader) head() ([]byte, error) {
	if ok, err := r.stream.Take('{'); !ok {
		return nil, errors.Join(err, errNoAnswer)
	}
	var head []byte
	for {
		text, err := r.stream.Value()
		if err != nil {
			return nil, err
		}
		name := string(text)
		if ok, err := r.stream.Take(':'); !ok {
			return nil, errors.Join(err, errNoAnswer)
		}
		if name == `"items"` || name == `"rows"` {
			if r.open, err = r.stream.Take('['); !r.open {
				err = errors.Join(err, errNoAnswer)
			}
			return asObject(head), err
		}
		if text, err = r.stream.Value(); err != nil {
			return nil, err
		}
		head = append(append(append(append(head, ','), name...), ':'), text...)
		if more, err := r.stream.Take(','); !more {
			return asObject(head), errors.Join(err, r.end())
		}
	}
}

// asObject makes a JSON object of fields that each follow a comma.
func asObject(members []byte) []byte {
	return append(append([]byte{'{'}, bytes.TrimPrefix(members, []byte{','})...), '}')
}

func (r *AnswerReader) end() error {
	if ok, err := r.stream.Take('}'); !ok {
		return errors.Join(err, errNoAnswer)
	}
	return nil
}

// Each calls take for the JSON of each object or row, which is valid until take returns. It returns the first
// error of take, or an error if the answer is incomplete.
func (r *AnswerReader) Each(take func(text []byte) error) error {
	for first := true; r.open; first = false {
		ended, err := r.stream.Take(']')
		switch {
		case ended:
			r.open = false
			err = r.end()
		case err == nil && !first:
			var more bool
			if more, err = r.stream.Take(','); !more {
				err = errors.Join(err, errNoAnswer)
			}
		}
		if err != nil {
			return fmt.Errorf("the answer is incomplete: %w", err)
		}
		if ended {
			return nil
		}
		text, err := r.stream.Value()
		if err != nil {
			return fmt.Errorf("the answer is incomplete: %w", err)
		}
		if err := take(text); err != nil {
			return err
		}
	}
	return nil
}
