package packed_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/crdcache/crdcache/internal/packed"
)

func newSegment(t *testing.T, size int64) (*packed.Segment, *os.File) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "segment"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return packed.NewSegment(file, size), file
}

func packedCertificate(t *testing.T, n int) *packed.Object {
	t.Helper()
	o, err := packed.NewPacker(nil).Pack(certificate(n))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// expectMoved fails unless the object equals another one and is in a segment.
func expectMoved(t *testing.T, want, o *packed.Object, in *packed.Segment) {
	t.Helper()
	text, _ := want.JSON()
	got, err := o.AppendJSON([]byte("a"))
	if err != nil || string(got) != "a"+text {
		t.Fatalf("AppendJSON() = %.80q, %v, want the JSON of %s", got, err, want.Key())
	}
	if o.Segment() != in || o.Key() != want.Key() || o.UID() != want.UID() || o.Version() != want.Version() ||
		len(o.GetLabels()) != len(want.GetLabels()) || !o.Compressed() || !o.SameContent(want) {
		t.Fatalf("%s differs from its original, or is in the wrong segment", want.Key())
	}
	if plain, err := o.Decompress(); err != nil || !plain.SameContent(want) || plain.Segment() != nil {
		t.Errorf("Decompress() of %s: %v", want.Key(), err)
	}
}

func TestSegment(t *testing.T) {
	for name, compress := range map[string]func(*packed.Object) *packed.Object{
		"JSON":       func(o *packed.Object) *packed.Object { return o },
		"compressed": packed.NewCodec(&deflate{dictionary: certificate(0)}).Compress,
	} {
		t.Run(name, func(t *testing.T) {
			first, _ := newSegment(t, 1<<20)
			second, _ := newSegment(t, 1<<20)
			var originals, moved []*packed.Object
			for n := range 100 {
				original := packedCertificate(t, n)
				small := compress(original)
				o, err := first.Move(small)
				if err != nil {
					t.Fatal(err)
				}
				if o.Len() != small.Len() || o.Size() < o.Len() || o.Size() > o.Len()+600 {
					t.Fatalf("Len() = %d, Size() = %d, want %d and at most 600 more", o.Len(), o.Size(), small.Len())
				}
				originals, moved = append(originals, original), append(moved, o)
			}
			for n, o := range moved {
				expectMoved(t, originals[n], o, first)
				again, err := second.Move(o)
				if err != nil {
					t.Fatal(err)
				}
				expectMoved(t, originals[n], again, second)
			}
			if first.Used() != second.Used() {
				t.Errorf("Used() = %d and %d, want equal lengths", first.Used(), second.Used())
			}
		})
	}
}

// TestSegmentFails fills a segment, and breaks the file of another one. Bodies that could not be written stay
// readable.
func TestSegmentFails(t *testing.T) {
	s, _ := newSegment(t, 3000)
	first, err := s.Move(packedCertificate(t, 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Move(packedCertificate(t, 1)); !errors.Is(err, packed.ErrSegmentFull) {
		t.Errorf("Move() to a full segment = %v, want ErrSegmentFull", err)
	}
	expectMoved(t, packedCertificate(t, 0), first, s)

	s, file := newSegment(t, 1<<30)
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	var moved []*packed.Object
	for err = nil; err == nil && len(moved) < 1000; {
		var o *packed.Object
		if o, err = s.Move(packedCertificate(t, len(moved))); err == nil {
			moved = append(moved, o)
		}
	}
	if !errors.Is(err, os.ErrClosed) || len(moved) == 0 {
		t.Fatalf("after %d objects, Move() = %v, want the error of the file", len(moved), err)
	}
	for n, o := range moved {
		expectMoved(t, packedCertificate(t, n), o, s)
	}
}
