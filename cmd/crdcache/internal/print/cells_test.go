package print

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/discovery/crd"
)

// printTable returns the lines of a table without trailing spaces.
func printTable(t *testing.T, columns []crd.Column, options printers.PrintOptions,
	objects ...*unstructured.Unstructured) []string {
	t.Helper()
	var out bytes.Buffer
	table := NewTypeTable(&out, NewRows(columns, time.Now), options)
	for _, obj := range objects {
		must(t, table.Print(NewObject(obj)))
	}
	must(t, table.Close())
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return lines
}

func printCell(t *testing.T, columnType string, value any) string {
	t.Helper()
	lines := printTable(t, []crd.Column{{Name: "X", Type: columnType, JSONPath: ".spec"}},
		printers.PrintOptions{NoHeaders: true}, newThing("n", value))
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "n") {
		t.Fatalf("the table is %q, want one row", lines)
	}
	return strings.TrimSpace(strings.TrimPrefix(lines[0], "n"))
}

func TestCells(t *testing.T) {
	longAgo := time.Now().Add(-50 * 24 * time.Hour).UTC().Format(time.RFC3339)
	tests := []struct {
		column string
		value  any
		want   string
	}{
		{"integer", int64(7), "7"},
		{"integer", 7.9, "7"},
		{"integer", "7", ""},
		{"integer", true, ""},
		{"number", 1.5, "1.5"},
		{"number", int64(2), "2"},
		{"number", "1.5", ""},
		{"boolean", true, "true"},
		{"boolean", false, "false"},
		{"boolean", "true", ""},
		{"boolean", int64(1), ""},
		{"string", "text", "text"},
		{"string", "", ""},
		{"string", int64(7), "7"},
		{"string", 1.5, "1.5"},
		{"string", true, "true"},
		{"string", map[string]any{"a": "b"}, `{"a":"b"}`},
		{"string", []any{"a", int64(1)}, `["a",1]`},
		{"date", longAgo, "50d"},
		{"date", "yesterday", "<invalid>"},
		{"date", int64(7), ""},
		{"unheard-of", "x", ""},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s/%v", tt.column, tt.value), func(t *testing.T) {
			if got := printCell(t, tt.column, tt.value); got != tt.want {
				t.Errorf("the cell is %q, want %q", got, tt.want)
			}
		})
	}
}

// TestSortedValues verifies the order of values of different types, which kubectl does not sort, and of
// texts.
func TestSortedValues(t *testing.T) {
	values := []any{
		nil, false, true, int64(-1), 0.5, int64(1), int64(1<<53) + 1, int64(1<<53) + 2, 1e300,
		"100m", "1", "1Ki", "2Gi", "3G", "Web", "node-010", "node-10", "node-9", "web",
	}
	order, err := ParseOrder(".value")
	must(t, err)
	for seed := range uint64(10) {
		shuffled := slices.Clone(values)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(shuffled), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		got, err := Sorted(order, shuffled, func(v any) (*unstructured.Unstructured, error) {
			return &unstructured.Unstructured{Object: map[string]any{"value": v}}, nil
		})
		if diff := cmp.Diff(values, got); diff != "" || err != nil {
			t.Errorf("%v; (-want +got):\n%s", err, diff)
		}
	}
}

func TestTableOfColumnsThatCannotBeParsed(t *testing.T) {
	good := crd.Column{Name: "Good", Type: "string", JSONPath: ".spec.text"}
	bad := crd.Column{Name: "Bad", Type: "string", JSONPath: ".spec["}
	tests := map[string]struct {
		columns []crd.Column
		want    string
	}{
		"first":      {[]crd.Column{bad, good}, "NAME\nx\n"},
		"in between": {[]crd.Column{good, bad, good}, "NAME   GOOD\nx      some\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			table := NewTypeTable(&out, NewRows(tt.columns, time.Now), printers.PrintOptions{})
			obj := &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": "x"},
				"spec":     map[string]any{"text": "some"},
			}}
			must(t, table.Print(NewObject(obj)))
			must(t, table.Close())
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

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
	table := func(w io.Writer) Printer {
		return NewTypeTable(w, NewRows(nil, time.Now), printers.PrintOptions{})
	}
	format := func(name string) func(io.Writer) Printer {
		return func(w io.Writer) Printer {
			p, err := NewPrinter(Format{Name: name}, w, List, false)
			must(t, err)
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

// TestStreamOnTerminal verifies that control characters are replaced, however the text is split.
func TestStreamOnTerminal(t *testing.T) {
	const hostile = "a\x1b[2J\tb\u009b31mé→█\x07\xff\r\x7fc\n"
	const want = "a\ufffd[2J\tb\ufffd31mé→█\ufffd\ufffd\ufffd\ufffdc\n"
	for size := 1; size <= len(hostile); size++ {
		var out bytes.Buffer
		s := &Stream{w: &out, isTerminal: true}
		for rest := []byte(hostile); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			piece := rest[:min(size, len(rest))]
			if n, err := s.Write(piece); n != len(piece) || err != nil {
				t.Fatalf("Write() = %d, %v, want the full length", n, err)
			}
		}
		if out.String() != want {
			t.Errorf("in pieces of %d: %q, want %q", size, out.String(), want)
		}
	}
}

// TestUnicode verifies that the character set of the first variable that is set is used.
func TestUnicode(t *testing.T) {
	for _, tt := range []struct {
		all, ctype, lang string
		want             bool
	}{
		{"", "", "", true},
		{"C", "", "", false},
		{"POSIX", "", "en_US.UTF-8", false},
		{"", "ISO-8859-1", "en_US.UTF-8", false},
		{"", "", "de_DE.ISO-8859-15@euro", false},
		{"", "", "de_DE.UTF-8", true},
		{"C.utf8", "", "C", true},
		{"", "en_US.UTF-8", "C", true},
		{"", "", "en_US", false},
	} {
		t.Setenv("LC_ALL", tt.all)
		t.Setenv("LC_CTYPE", tt.ctype)
		t.Setenv("LANG", tt.lang)
		if got := SupportsUnicode(); got != tt.want {
			t.Errorf("%+v: SupportsUnicode() = %v, want %v", tt, got, tt.want)
		}
		if end := Ellipsis(); tt.want == (utf8.RuneCountInString(end) == len(end)) {
			t.Errorf("%+v: Ellipsis() = %q, want … if Unicode is supported, otherwise ...", tt, end)
		}
	}
}

// TestTruncate verifies that text is cut between characters, with space for the ellipsis.
func TestTruncate(t *testing.T) {
	for _, tt := range []struct {
		text           string
		most           int
		ascii, unicode string
	}{
		{"abcdef", 6, "abcdef", "abcdef"},
		{"abcdef", 5, "ab...", "abcd…"},
		{"äöüß", 4, "äöüß", "äöüß"},
		{"äöüßa", 4, "ä...", "äöü…"},
		{"abcdef", 0, "...", "…"},
		{"", 0, "", ""},
	} {
		for locale, want := range map[string]string{"C": tt.ascii, "C.UTF-8": tt.unicode} {
			t.Setenv("LC_ALL", locale)
			if got := Truncate(tt.text, tt.most); got != want {
				t.Errorf("%s: Truncate(%q, %d) = %q, want %q", locale, tt.text, tt.most, got, want)
			}
		}
	}
}

// TestPrintable verifies that bidirectional controls and line separators are replaced.
func TestPrintable(t *testing.T) {
	const hostile = "a\u202eb\u2066c\u2028d\x1b\ne\u200df\u0301"
	for locale, want := range map[string]string{
		"C": "a?b?c?d??e\u200df\u0301", "C.UTF-8": "a\ufffdb\ufffdc\ufffdd\ufffd\ufffde\u200df\u0301",
	} {
		t.Setenv("LC_ALL", locale)
		if got := Printable(hostile); got != want {
			t.Errorf("%s: Printable() = %q, want %q", locale, got, want)
		}
	}
}
