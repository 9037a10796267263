package output

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/printers"
)

func TestSortKeys(t *testing.T) {
	keys := []string{"b", "web/b", "a/x", "web/a", "a-b/x", "a.b/x", "a", "A/x", "a/", "é/x", "a0/x"}
	SortKeys(keys)
	// "-" and "." sort before "/", digits after it.
	want := []string{"A/x", "a", "a-b/x", "a.b/x", "a/", "a/x", "a0/x", "b", "web/a", "web/b", "é/x"}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
}

func TestNewUnknownFormat(t *testing.T) {
	if p, err := New("xml", io.Discard); err == nil || p != nil {
		t.Errorf("New = %v, %v; want an error", p, err)
	}
}

// full is a writer that takes some writes and then fails.
type full struct{ room int }

var errFull = errors.New("no space left")

func (f *full) Write(p []byte) (int, error) {
	if f.room == 0 {
		return 0, errFull
	}
	f.room--
	return len(p), nil
}

// TestWriteErrors: whichever write fails, one of the calls says so.
func TestWriteErrors(t *testing.T) {
	table := func(w io.Writer) Printer { return NewTable(w, nil, printers.PrintOptions{}) }
	format := func(name string) func(io.Writer) Printer {
		return func(w io.Writer) Printer {
			p, err := New(name, w)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
	}
	tests := map[string]func(io.Writer) Printer{JSON: format(JSON), YAML: format(YAML), Name: format(Name), "table": table}
	for name, make := range tests {
		t.Run(name, func(t *testing.T) {
			print := func(room int) (failed []bool) {
				p := make(&full{room: room})
				for _, name := range []string{"a", "b"} {
					failed = append(failed, errors.Is(p.Print(thing(name, nil)), errFull))
				}
				return append(failed, errors.Is(p.Close(), errFull))
			}
			const enough = 1000
			if failed := print(enough); slices.Contains(failed, true) {
				t.Fatalf("with enough room: %v", failed)
			}
			room := 0
			for ; room < enough && slices.Contains(print(room), true); room++ {
			}
			if room == 0 || room == enough {
				t.Errorf("%d writes have to succeed for the output to be written", room)
			}
			for fewer := range room {
				if !slices.Contains(print(fewer), true) {
					t.Errorf("the failure of write %d is lost", fewer+1)
				}
			}
		})
	}
}
