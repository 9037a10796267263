package filesource

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/internal/manifest"
)

// repeatingReader repeats a text forever.
type repeatingReader struct {
	text   string
	offset int
}

func (e *repeatingReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[e.offset]
		e.offset = (e.offset + 1) % len(e.text)
	}
	return len(p), nil
}

// TestEndlessInput verifies that an endless document is an error, and that reading it uses bounded memory.
func TestEndlessInput(t *testing.T) {
	for name, in := range map[string]io.Reader{
		"lines":            &repeatingReader{text: "a: " + strings.Repeat("1", 1000) + "\n"},
		"a string of JSON": io.MultiReader(strings.NewReader(`{"a":"`), &repeatingReader{text: "x"}),
		"an item": io.MultiReader(strings.NewReader("apiVersion: v1\nkind: List\nitems:\n- a\n"),
			&repeatingReader{text: "  " + strings.Repeat("b", 1000) + "\n"}),
	} {
		t.Run(name, func(t *testing.T) {
			s := openSource(t, Options{Paths: []string{manifest.Stdin}, In: in})
			if err := s.Err(); !errors.Is(err, manifest.ErrTooLarge) {
				t.Errorf("the error is %v, want %v", err, manifest.ErrTooLarge)
			}
		})
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	must(t, errors.Join(w.WriteHeader(&tar.Header{Name: "a.yaml", Mode: 0o600}), w.Close()))
	for want, in := range map[string]io.Reader{
		"only zero bytes":                strings.NewReader(""),
		"follows the end of the archive": &archive,
	} {
		s, err := Open(t.Context(), Options{Paths: []string{manifest.Stdin},
			In: io.MultiReader(in, &repeatingReader{text: "\x00"})})
		if err == nil {
			err = s.Err()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error of endless zeros is %v, want %q", err, want)
		}
	}
}

// TestManyProblems verifies that the first problems of a file and the number of the others are reported.
func TestManyProblems(t *testing.T) {
	dir := writeTree(t, map[string]string{
		"a.yaml": "apiVersion: v1\nkind: List\nitems:\n" + strings.Repeat("- {}\n", 1000), "b.yaml": "a: [",
	})
	s := openSource(t, Options{Paths: []string{dir + "/a.yaml", dir + "/b.yaml"}})
	problems := s.Problems()
	if len(problems) != 20+2 { // 20 problems, the number of the others, and the problem of the second file
		t.Fatalf("%d problems, want 22", len(problems))
	}
	if got, want := problems[len(problems)-1].Error(), dir+"/a.yaml: 980 more errors"; got != want {
		t.Errorf("the last problem is %q, want %q", got, want)
	}
	if err := s.Refresh(t.Context()); err != nil || len(s.Problems()) != len(problems) {
		t.Errorf("Refresh() without changes = %v with %d problems, want %d", err, len(s.Problems()), len(problems))
	}
}

// TestDecodeErrors verifies that the error says why an object cannot be decoded.
func TestDecodeErrors(t *testing.T) {
	object := func(spec string) string {
		return `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","namespace":"web"},"spec":` + spec + "}"
	}
	for name, tt := range map[string]struct{ spec, want string }{
		"a number": {"1e999", "1e999"},
		"nesting":  {strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), "max depth"},
	} {
		t.Run(name, func(t *testing.T) {
			in := strings.NewReader(object(tt.spec))
			s := openSource(t, Options{Paths: []string{manifest.Stdin}, In: in})
			if err := s.Err(); !errors.Is(err, manifest.ErrNotObject) ||
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %q in it", err, tt.want)
			}
		})
	}
}
