package filesource

import (
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
		"zeros":            &repeatingReader{text: "\x00"},
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
}

// TestInvalidIdentity verifies that objects with an invalid kind, version or name are reported.
func TestInvalidIdentity(t *testing.T) {
	for text, want := range map[string]string{
		"{apiVersion: a/b/c, kind: Foo, metadata: {name: a}}": `Foo has the apiVersion "a/b/c", which is neither VERSION nor GROUP/VERSION`,
		"{apiVersion: /, kind: Foo, metadata: {name: a}}":     `Foo has the apiVersion "/", which is neither VERSION nor GROUP/VERSION`,
		"{apiVersion: v1, kind: Foo, metadata: {name: 007}}":  "Foo has a metadata.name that is not a string: 7; put it in quotes",
		"{apiVersion: v1, kind: Foo, metadata: {name: null}}": "Foo has no metadata.name",
		"{apiVersion: v1, kind: Foo, metadata: {name: ''}}":   "Foo has no metadata.name",
		"{apiVersion: v1, kind: Foo, metadata: null}":         "Foo has no metadata.name",
		"{apiVersion: v1, kind: Foo}":                         "Foo has no metadata.name",
		"{apiVersion: v1, kind: Foo, metadata: [a]}":          "Foo has metadata that is not a map",
	} {
		s := openSource(t, Options{Paths: []string{manifest.Stdin}, In: strings.NewReader(text)})
		if err := s.Err(); err == nil || err.Error() != "stdin:1: document 1: "+want {
			t.Errorf("%s: the error is %v, want %q", text, err, want)
		}
	}
}
