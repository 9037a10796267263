package live

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// TestReadAnswer checks that objects and rows are read one by one, and that a truncated answer is an error.
func TestReadAnswer(t *testing.T) {
	s := newFixture(t, Options{})
	for name, parameters := range map[string]string{"objects": "", "rows": "&rows=true", "keys": "&keys=true",
		"count": "&count=true"} {
		t.Run(name, func(t *testing.T) {
			answerText := get(t, s.server, QueryPath(demoGroup, "v1", "", "workloads")+"?scan=true"+
				parameters).Body.String()
			var fullAnswer struct{ Items, Rows []json.RawMessage }
			s.must(json.Unmarshal([]byte(answerText), &fullAnswer))
			var want []string
			for _, item := range append(fullAnswer.Items, fullAnswer.Rows...) {
				want = append(want, string(item))
			}
			r, err := ReadAnswer(strings.NewReader(answerText))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			if err := r.Each(func(answerText []byte) error {
				got = append(got,
					string(answerText))
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) || r.Kind != AnswerKind || r.ResourceVersion == "" {
				t.Errorf("the reader returned %d objects or rows, want %d; the answer is %+v", len(got),
					len(want), r.Answer)
			}
			step := 1
			if testing.Short() {
				step = 7
			}
			for end := 0; end < len(strings.TrimSpace(answerText)); end += step {
				cut, err := ReadAnswer(strings.NewReader(answerText[:end]))
				if err == nil {
					err = cut.Each(func([]byte) error { return nil })
				}
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatalf("answer truncated to %d of %d bytes: error %v, want io.ErrUnexpectedEOF", end,
						len(answerText), err)
				}
			}
		})
	}
	for _, answerText := range []string{"", "[]", "{}", `{"kind"}`, `{"kind":1}`, "<html>"} {
		if _, err := ReadAnswer(strings.NewReader(answerText)); err == nil {
			t.Errorf("ReadAnswer(%q) succeeded, want an error", answerText)
		}
	}
}

// TestReadAnswerOfAnotherShape verifies that text that is not a query answer is an error, not an answer
// without objects.
func TestReadAnswerOfAnotherShape(t *testing.T) {
	for _, text := range []string{
		`{"kind":"QueryAnswer","items":null`, `{"kind":"QueryAnswer","items":{"a":1}}`,
		`{"kind":"QueryAnswer","items":[1 2]}`, `{"kind":"QueryAnswer","items":[1,]}`,
		`{"kind":"Other","items":[1]}`,
	} {
		r, err := ReadAnswer(strings.NewReader(text))
		if err == nil {
			err = r.Each(func([]byte) error { return nil })
		}
		if err == nil {
			t.Errorf("ReadAnswer(%s) succeeded, want an error", text)
		}
	}
}
