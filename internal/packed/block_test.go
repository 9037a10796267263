package packed_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/packed"
)

// inBlock returns an object as a block has it; nil: blocks cannot take it.
func inBlock(t testing.TB, objects ...*packed.Object) []*packed.Object {
	t.Helper()
	var w packed.BlockWriter
	for _, o := range objects {
		if added, err := w.Add(o); err != nil {
			t.Fatal(err)
		} else if !added {
			return nil
		}
	}
	if w.Count() != len(objects) {
		t.Fatalf("the block has %d objects of %d", w.Count(), len(objects))
	}
	head, bodies := w.Block()
	bodies = bytes.Clone(bodies)
	read, err := packed.ReadBlock(head, func() ([]byte, error) { return bodies, nil }, 0)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func textOf(t testing.TB, o *packed.Object) string {
	t.Helper()
	text, err := o.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestBlocks: what comes out of a block is what went in, text by text, and unfolded it is the same in each of
// its parts.
func TestBlocks(t *testing.T) {
	codec := packed.NewCodec(&deflate{dictionary: certificate(0)})
	for name, packer := range pruners(t) {
		t.Run(name, func(t *testing.T) {
			var all []*packed.Object
			documents := manifests(t)
			for n := range 50 {
				documents = append(documents, certificate(n))
			}
			for _, text := range handmade() {
				documents = append(documents, []byte(text))
			}
			for _, document := range documents {
				o := packer.Try(document)
				if o == nil {
					continue
				}
				all = append(all, o)
				compressed := inBlock(t, codec.Compress(o))
				if text := textOf(t, compressed[0]); text != textOf(t, o) {
					t.Fatalf("of a compressed object there is %s", text)
				}
			}
			for k, o := range inBlock(t, all...) {
				want := all[k]
				if got := textOf(t, o); got != textOf(t, want) {
					t.Fatalf("there is %s, want %s", got, textOf(t, want))
				}
				if !o.Compressed() || o.Block() == nil || want.Block() != nil {
					t.Error("it does not count as compressed, or as one of a block")
				}
				own, err := o.Decompress()
				if err != nil || !own.Same(want) {
					t.Fatalf("unfolded it is not the same as %s: %v", textOf(t, want), err)
				}
				for form, o := range map[string]*packed.Object{"in the block": o, "unfolded": own} {
					if diff := cmp.Diff(identityOf(want), identityOf(o)); diff != "" {
						t.Errorf("%s (-want +got):\n%s", form, diff)
					}
				}
				if !o.SameContent(want) {
					t.Error("it has not the same content")
				}
			}
		})
	}
}

func identityOf(o *packed.Object) []any {
	return []any{o.Key(), o.Name(), o.Namespace(), o.UID(), o.Version(), o.GetAPIVersion(), o.GetKind(),
		o.GroupVersionKind(), o.GetLabels()}
}

// TestBlocksOfDecompressed: objects that were compressed before, as adaptive storage has them, have what
// identifies them, and their labels, behind the JSON.
func TestBlocksOfDecompressed(t *testing.T) {
	codec := packed.NewCodec(&deflate{dictionary: certificate(0)})
	for n := range 5 {
		want := packed.NewPacker(nil).Try(certificate(n))
		again, err := codec.Compress(want).Decompress()
		if err != nil {
			t.Fatal(err)
		}
		folded := inBlock(t, again)[0]
		unfolded, err := folded.Decompress()
		if err != nil {
			t.Fatal(err)
		}
		for form, o := range map[string]*packed.Object{"in the block": folded, "unfolded": unfolded} {
			if diff := cmp.Diff(identityOf(want), identityOf(o)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", form, diff)
			}
			if got := textOf(t, o); got != textOf(t, want) {
				t.Errorf("%s there is %s, want %s", form, got, textOf(t, want))
			}
		}
	}
}

// TestUnfold: one call yields each object of the block.
func TestUnfold(t *testing.T) {
	var all []*packed.Object
	for n := range 5 {
		all = append(all, packed.NewPacker(nil).Try(certificate(n)))
	}
	read := inBlock(t, all...)
	var got []*packed.Object
	read[2].Block().Unfold(func(folded *packed.Object, unfold func() (*packed.Object, error)) bool {
		own, err := unfold()
		if err != nil || !own.Same(all[len(got)]) || own.Block() != nil {
			t.Errorf("%s is unfolded to %v: %v", folded.Key(), own, err)
		}
		got = append(got, folded)
		return true
	})
	if diff := cmp.Diff(len(read), len(got)); diff != "" {
		t.Fatal(diff)
	}
	for k := range read {
		if read[k] != got[k] {
			t.Errorf("object %d is another one", k)
		}
	}
}

// TestNotInBlocks: what has no JSON is left out.
func TestNotInBlocks(t *testing.T) {
	o, err := packed.FromUnstructured(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1",
		"kind": "K", "odd": struct{}{}}})
	if err != nil {
		t.Fatal(err)
	}
	if inBlock(t, o) != nil {
		t.Error("it is in the block")
	}
}

var errBodies = errors.New("no bodies")

// damagedBlocks are heads and bodies that nobody has written.
func damagedBlocks(t testing.TB, read func(head, bodies []byte)) {
	t.Helper()
	var w packed.BlockWriter
	for n := range 2 {
		if _, err := w.Add(packed.NewPacker(nil).Try(certificate(n))); err != nil {
			t.Fatal(err)
		}
	}
	head, bodies := w.Block()
	for n := range head {
		read(bytes.Clone(head[:n]), bodies)
		for _, c := range []byte{0, 1, 0x7f, 0xff} {
			damaged := bytes.Clone(head)
			damaged[n] = c
			read(damaged, bodies)
		}
	}
	read(head, bodies[:len(bodies)/2])
}

// readAll reads whatever there is in a block.
func readAll(head, bodies []byte) {
	objects, err := packed.ReadBlock(head, func() ([]byte, error) { return bodies, nil }, len(bodies))
	if err != nil {
		return
	}
	for _, o := range objects {
		_ = fmt.Sprint(identityOf(o)...)
		_, _ = o.AppendJSON(nil)
		_, _ = o.Decompress()
		if size := o.Size(); size > o.Block().Held() {
			panic(fmt.Sprintf("%d bytes of %d", size, o.Block().Held()))
		}
	}
}

// TestDamagedBlocks: what cannot be read is an error, and not a panic.
func TestDamagedBlocks(t *testing.T) {
	damagedBlocks(t, readAll)
	var w packed.BlockWriter
	if _, err := w.Add(packed.NewPacker(nil).Try(certificate(1))); err != nil {
		t.Fatal(err)
	}
	head, _ := w.Block()
	read, err := packed.ReadBlock(head, func() ([]byte, error) { return nil, errBodies }, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read[0].AppendJSON(nil); !errors.Is(err, errBodies) {
		t.Errorf("the error is %v", err)
	}
	if _, err := read[0].Decompress(); !errors.Is(err, errBodies) {
		t.Errorf("the error is %v", err)
	}
	if name := read[0].Unstructured().GetName(); name != "certificate-1" {
		t.Errorf("without its body it is %q", name)
	}
}

func FuzzReadBlock(f *testing.F) {
	var w packed.BlockWriter
	for n := range 2 {
		if _, err := w.Add(packed.NewPacker(nil).Try(certificate(n))); err != nil {
			f.Fatal(err)
		}
	}
	head, bodies := w.Block()
	f.Add(head, bodies)
	f.Fuzz(func(_ *testing.T, head, bodies []byte) { readAll(head, bodies) })
}
