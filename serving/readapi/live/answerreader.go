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
	// hasMore is set while objects or rows remain.
	hasMore bool
}

// ReadAnswer reads an answer up to the first object or row.
func ReadAnswer(source io.Reader) (*AnswerReader, error) {
	r := &AnswerReader{stream: jsontext.NewStream(source)}
	head, err := r.readHead()
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

var errNoAnswer = errors.New("the text is not an answer to a query")

// readHead returns the fields before the objects or rows as a JSON object.
func (r *AnswerReader) readHead() ([]byte, error) {
	if ok, err := r.stream.Take('{'); !ok {
		return nil, errors.Join(err, errNoAnswer)
	}
	fields := map[string]json.RawMessage{}
	for closed := false; !closed; {
		name, err := r.stream.Key()
		if err != nil {
			return nil, err
		}
		if name == "items" || name == "rows" {
			if r.hasMore, err = r.stream.Take('['); !r.hasMore {
				return nil, errors.Join(err, errNoAnswer)
			}
			break
		}
		text, err := r.stream.Value()
		if err != nil {
			return nil, err
		}
		fields[name] = bytes.Clone(text)
		if closed, err = r.stream.Next('}'); err != nil {
			return nil, err
		}
	}
	return json.Marshal(fields)
}

// Each calls yield for the JSON of each object or row, which is valid until yield returns. It returns the
// first error of yield, or an error if the answer is incomplete.
func (r *AnswerReader) Each(yield func(text []byte) error) error {
	if !r.hasMore {
		return nil
	}
	closed, err := r.stream.Take(']')
	for !closed && err == nil {
		var text []byte
		if text, err = r.stream.Value(); err != nil {
			break
		}
		if err := yield(text); err != nil {
			return err
		}
		closed, err = r.stream.Next(']')
	}
	r.hasMore = false
	if err == nil {
		var ended bool
		if ended, err = r.stream.Take('}'); !ended {
			err = errors.Join(err, errNoAnswer)
		}
	}
	if err != nil {
		return fmt.Errorf("the answer is incomplete: %w", err)
	}
	return nil
}
