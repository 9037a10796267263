package packed_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/internal/packed"
)

// writeAndReadBlock writes objects to a block and reads them back. It returns nil if blocks cannot represent
// them.
func writeAndReadBlock(t testing.TB, objects ...*packed.Object) []*packed.Object {
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
		t.Fatalf("the block has %d objects, want %d", w.Count(), len(objects))
	}
	index, bodies := w.AppendBlock(nil)
	bodies = bytes.Clone(bodies)
	read, err := packed.ReadBlock(index, func() ([]byte, error) { return bodies, nil }, 0)
	must(t, err)
	return read
}

func jsonOf(t testing.TB, o *packed.Object) string {
	t.Helper()
	text, err := o.AppendJSON(nil)
	must(t, err)
	return string(text)
}

// TestBlocks checks that objects are the same after writing and reading a block, and after extraction from
// it.
func TestBlocks(t *testing.T) {
	codec := packed.NewCodec(&deflate{dictionary: certificate(0)})
	for name, packer := range testPackers(t) {
		t.Run(name, func(t *testing.T) {
			var all []*packed.Object
			documents := readManifests(t)
			for n := range 50 {
				documents = append(documents, certificate(n))
			}
			for _, text := range unusualDocuments() {
				documents = append(documents, []byte(text))
			}
			for _, document := range documents {
				o := packer.TryPack(document)
				if o == nil {
					continue
				}
				all = append(all, o)
				compressed := writeAndReadBlock(t, codec.Compress(o))
				if text := jsonOf(t, compressed[0]); text != jsonOf(t, o) {
					t.Fatalf("the compressed object has other JSON: %s", text)
				}
			}
			for k, o := range writeAndReadBlock(t, all...) {
				want := all[k]
				if got := jsonOf(t, o); got != jsonOf(t, want) {
					t.Fatalf("got %s, want %s", got, jsonOf(t, want))
				}
				if !o.Compressed() || o.Block() == nil || want.Block() != nil {
					t.Error("the object is not compressed or not in a block")
				}
				own, err := o.Decompress()
				if err != nil || !own.SameBytes(want) {
					t.Fatalf("the extracted object differs from %s: %v", jsonOf(t, want), err)
				}
				for form, o := range map[string]*packed.Object{"in the block": o, "extracted": own} {
					if diff := cmp.Diff(identityFields(want), identityFields(o)); diff != "" {
						t.Errorf("%s (-want +got):\n%s", form, diff)
					}
				}
				if !o.SameContent(want) {
					t.Error("SameContent() = false, want true")
				}
			}
		})
	}
}

func identityFields(o *packed.Object) []any {
	return []any{o.Key(), o.Name(), o.Namespace(), o.UID(), o.Version(), o.GetAPIVersion(), o.GetKind(),
		o.GroupVersionKind(), o.GetLabels()}
}

// TestBlocksOfDecompressed verifies that blocks preserve objects that were compressed before. The memory of
// such objects has the identity fields after the JSON.
func TestBlocksOfDecompressed(t *testing.T) {
	codec := packed.NewCodec(&deflate{dictionary: certificate(0)})
	for n := range 5 {
		want := packed.NewPacker(nil).TryPack(certificate(n))
		again, err := codec.Compress(want).Decompress()
		must(t, err)
		o := writeAndReadBlock(t, again)[0]
		extracted, err := o.Decompress()
		must(t, err)
		for form, o := range map[string]*packed.Object{"in the block": o, "extracted": extracted} {
			if diff := cmp.Diff(identityFields(want), identityFields(o)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", form, diff)
			}
			if got := jsonOf(t, o); got != jsonOf(t, want) {
				t.Errorf("%s: got %s, want %s", form, got, jsonOf(t, want))
			}
		}
	}
}

var errBodies = errors.New("no bodies")

func damagedBlocks(t testing.TB, read func(index, bodies []byte)) {
	t.Helper()
	var w packed.BlockWriter
	for n := range 2 {
		if _, err := w.Add(packed.NewPacker(nil).TryPack(certificate(n))); err != nil {
			t.Fatal(err)
		}
	}
	index, bodies := w.AppendBlock(nil)
	for n := range index {
		read(bytes.Clone(index[:n]), bodies)
		for _, c := range []byte{0, 1, 0x7f, 0xff} {
			damaged := bytes.Clone(index)
			damaged[n] = c
			read(damaged, bodies)
		}
	}
	read(index, bodies[:len(bodies)/2])
}

// readAll reads all objects of a block.
func readAll(index, bodies []byte) {
	objects, err := packed.ReadBlock(index, func() ([]byte, error) { return bodies, nil }, len(bodies))
	if err != nil {
		return
	}
	for _, o := range objects {
		_ = fmt.Sprint(identityFields(o)...)
		_, _ = o.AppendJSON(nil)
		_, _ = o.Decompress()
	}
}

// TestDamagedBlocks checks that damaged blocks cause errors, not panics.
func TestDamagedBlocks(t *testing.T) {
	damagedBlocks(t, readAll)
	var w packed.BlockWriter
	if _, err := w.Add(packed.NewPacker(nil).TryPack(certificate(1))); err != nil {
		t.Fatal(err)
	}
	index, _ := w.AppendBlock(nil)
	read, err := packed.ReadBlock(index, func() ([]byte, error) { return nil, errBodies }, 0)
	must(t, err)
	if _, err := read[0].AppendJSON(nil); !errors.Is(err, errBodies) {
		t.Errorf("AppendJSON() = %v, want errBodies", err)
	}
	if _, err := read[0].Decompress(); !errors.Is(err, errBodies) {
		t.Errorf("Decompress() = %v, want errBodies", err)
	}
	if name := read[0].Unstructured().GetName(); name != "certificate-1" {
		t.Errorf("name of an object without a body = %q, want certificate-1", name)
	}
}

func FuzzReadBlock(f *testing.F) {
	var w packed.BlockWriter
	for n := range 2 {
		if _, err := w.Add(packed.NewPacker(nil).TryPack(certificate(n))); err != nil {
			f.Fatal(err)
		}
	}
	index, bodies := w.AppendBlock(nil)
	f.Add(index, bodies)
	f.Fuzz(func(_ *testing.T, index, bodies []byte) { readAll(index, bodies) })
}
