package manifest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// compressed returns a text compressed with gzip and zstd.
func compressed(t *testing.T, text string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	write := func(name string, w io.WriteCloser, to *bytes.Buffer) {
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		out[name] = to.Bytes()
	}
	var a, b bytes.Buffer
	write("gzip", gzip.NewWriter(&a), &a)
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	write("zstd", w, &b)
	return out
}

func TestCompressed(t *testing.T) {
	want := []string{"1 1/0: v1 A a", "6 2/0: v1 B b"}
	for name, data := range compressed(t, aYAML+"---\n"+bYAML) {
		if diff := cmp.Diff(want, describeEntries(t, bytes.NewReader(data))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		// Two compressed members are read as one text. A truncated member is an error.
		double := io.MultiReader(bytes.NewReader(data), bytes.NewReader(data))
		if got := describeEntries(t, double); len(got) != 3 ||
			!strings.Contains(got[2], "v1 B b") {
			t.Errorf("%s, two members: got %q", name, got)
		}
		if got := describeEntries(t, bytes.NewReader(data[:len(data)-9])); len(got) == 0 ||
			!strings.HasPrefix(got[len(got)-1], "failed: ") {
			t.Errorf("%s, truncated: got %q, want an error", name, got)
		}
	}
}

// TestDamaged verifies that truncated or damaged compressed data is an error.
func TestDamaged(t *testing.T) {
	object := func(i int) string {
		sum := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"A","metadata":{"name":"a%d"},"data":"%x"}`, i, sum)
	}
	var lines, list, documents strings.Builder
	list.WriteString(`{"apiVersion":"v1","kind":"List","items":[`)
	for i := range 2000 {
		lines.WriteString(object(i) + "\n")
		documents.WriteString("---\napiVersion: v1\nkind: A\nspec: " + object(i) + "\n")
		list.WriteString(object(i) + ",")
	}
	list.WriteString(object(2000) + "]}")
	for of, text := range map[string]string{"lines": lines.String(), "list": list.String(),
		"documents": documents.String()} {
		for by, data := range compressed(t, text) {
			damaged := bytes.Clone(data)
			damaged[len(damaged)/2] ^= 0xff
			for how, data := range map[string][]byte{"cut": data[:len(data)/2], "damaged": damaged} {
				got := describeEntries(t, bytes.NewReader(data))
				if len(got) == 0 || !strings.HasPrefix(got[len(got)-1], "failed: ") {
					t.Errorf("%s, %s, %s: %d entries, of which the last is %q; want an error", of, by, how,
						len(got),
						got[max(0, len(got)-1):])
				}
			}
		}
	}
}

// TestWindowBound verifies that data is rejected if its decompression needs gigabytes of memory.
func TestWindowBound(t *testing.T) {
	// This is the header of a frame with a window of 2 GiB.
	if got := describeEntries(t, strings.NewReader("\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00")); len(got) != 1 ||
		!strings.Contains(got[0], "window size") {
		t.Errorf("reading the frame returned %q, want an error about the window size", got)
	}
}
