package print

import (
	"errors"
	"io"
	"slices"
	"testing"

	"k8s.io/cli-runtime/pkg/printers"
)

// fullWriter fails after some writes.
type fullWriter struct{ remaining int }

var errFull = errors.New("no space left")

func (f *fullWriter) Write(p []byte) (int, error) {
	if f.remaining == 0 {
		return 0, errFull
	}
	f.remaining--
	return len(p), nil
}

// TestWriteErrors checks that each failed write is returned.
func TestWriteErrors(t *testing.T) {
	table := func(w io.Writer) Printer { return NewTypeTable(w, NewRows(nil), printers.PrintOptions{}) }
	format := func(name string) func(io.Writer) Printer {
		return func(w io.Writer) Printer {
			p, err := NewPrinter(Format{Name: name}, w, List, false)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
	}
	tests := map[string]func(io.Writer) Printer{JSON: format(JSON), YAML: format(YAML), Name: format(Name),
		"table": table}
	for name, make := range tests {
		t.Run(name, func(t *testing.T) {
			print := func(room int) (failed []bool) {
				p := make(&fullWriter{remaining: room})
				for _, name := range []string{"a", "b"} {
					failed = append(failed, errors.Is(p.Print(NewObject(newThing(name, nil))), errFull))
				}
				return append(failed, errors.Is(p.Close(), errFull))
			}
			const enough = 1000
			if failed := print(enough); slices.Contains(failed, true) {
				t.Fatalf("with enough space, failed writes: %v", failed)
			}
			room := 0
			for ; room < enough && slices.Contains(print(room), true); room++ {
			}
			if room == 0 || room == enough {
				t.Errorf("the output needs %d writes, want some, and less than %d", room, enough)
			}
			for fewer := range room {
				if !slices.Contains(print(fewer), true) {
					t.Errorf("the failure of write %d is not returned", fewer+1)
				}
			}
		})
	}
}
