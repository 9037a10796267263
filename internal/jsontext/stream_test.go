package jsontext_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// TestStream verifies that a stream returns values that are larger than its buffer or arrive byte by byte.
func TestStream(t *testing.T) {
	large := `"` + strings.Repeat("x", 200<<10) + `"`
	const small = `{"a":[1,{"b":null}]}`
	values := []string{small, large, `12`, `-1.5e3`, `true`, small}
	text := " [" + strings.Join(values, " ,\n") + "] "
	for name, source := range map[string]io.Reader{
		"whole": strings.NewReader(text),
		"bytes": iotest.OneByteReader(strings.NewReader("[" + strings.Join(values[2:], ",") + "]")),
		"error": iotest.DataErrReader(strings.NewReader(text)),
	} {
		t.Run(name, func(t *testing.T) {
			s := jsontext.NewStream(source)
			if ok, err := s.Take('['); !ok || err != nil {
				t.Fatalf("Take('[') = %v, %v, want true", ok, err)
			}
			want := values
			if name == "bytes" {
				want = values[2:]
			}
			for i, value := range want {
				if ok, err := s.Take(','); ok != (i > 0) || err != nil {
					t.Fatalf("Take(',') before value %d = %v, %v", i, ok, err)
				}
				got, err := s.Value()
				if err != nil || string(got) != value {
					t.Fatalf("value %d = %.40q, %v", i, got, err)
				}
			}
			if ok, err := s.Take(']'); !ok || err != nil {
				t.Errorf("Take(']') = %v, %v, want true", ok, err)
			}
			if _, err := s.Peek(); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("Peek() at the end = %v, want io.ErrUnexpectedEOF", err)
			}
		})
	}
}
