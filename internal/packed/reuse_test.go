package packed_test

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/packed"
)

// withCachedObject returns a copy of the Packer whose lookup returns cached for any key.
func withCachedObject(p *packed.Packer, cached *packed.Object) *packed.Packer {
	again := packed.NewPacker(p.Pruner())
	again.SetLookup(func(string) *packed.Object { return cached })
	return again
}

// TestReuse checks that an object with the same JSON is reused, compressed or not, and no other object.
func TestReuse(t *testing.T) {
	codec := packed.NewCodec(&deflate{dictionary: certificate(0)})
	for name, packer := range testPackers(t) {
		t.Run(name, func(t *testing.T) {
			held := packer.TryPack(certificate(1))
			text, _ := held.JSON()
			for _, o := range []*packed.Object{held, codec.Compress(held)} {
				if got := withCachedObject(packer, o).TryPack(certificate(1)); got != o {
					t.Error("TryPack() did not reuse the object with the same JSON")
				}
				if got := withCachedObject(packer, o).TryPack(certificate(2)); got == o {
					t.Error("TryPack() reused an object with other content")
				}
				// After a change of a schema's defaults, the same version can have another body.
				other := bytes.Replace(certificate(1), []byte(`"spec":{`), []byte(`"spec":{"new":1,`), 1)
				if plain, _ := packer.TryPack(other).JSON(); plain == text {
					continue // the pruner removes the changed field
				}
				got := withCachedObject(packer, o).TryPack(other)
				if got == o || got.Version() != o.Version() {
					t.Error("TryPack() reused an object with another body")
				}
			}
			if withCachedObject(packer, nil).TryPack(certificate(1)) == nil {
				t.Error("TryPack() did not pack a new object")
			}
		})
	}
}

// FuzzReuse compares packing with and without a lookup.
func FuzzReuse(f *testing.F) {
	documents := unusualDocuments()
	for _, one := range documents {
		if len(one) < 2_000 {
			f.Add([]byte(one), []byte(one))
		}
	}
	f.Add(certificate(1), certificate(1))
	f.Add(certificate(1), certificate(2))
	all := testPackers(f)
	codec := packed.NewCodec(&deflate{dictionary: certificate(0)})
	f.Fuzz(func(t *testing.T, holds, arrives []byte) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			packer := all[name]
			held, want := packer.TryPack(holds), packer.TryPack(arrives)
			if held == nil {
				continue
			}
			for _, o := range []*packed.Object{held, codec.Compress(held)} {
				got := withCachedObject(packer, o).TryPack(arrives)
				if (got == nil) != (want == nil) {
					t.Fatalf("%s: packed is %v beside another, %v alone", name, got != nil, want != nil)
				}
				if got == nil {
					continue
				}
				text, err := got.AppendJSON(nil)
				if plain, _ := want.JSON(); err != nil || string(text) != plain {
					t.Fatalf("%s: got %s with a lookup, %s without (%v)", name, text, plain, err)
				}
				if got.Key() != want.Key() || got.UID() != want.UID() || got.Version() != want.Version() ||
					got.GroupVersionKind() != want.GroupVersionKind() ||
					!maps.Equal(got.GetLabels(), want.GetLabels()) {
					t.Fatalf("%s: %v beside another, %v alone", name, got, want)
				}
			}
		}
	})
}

// updatedTexts returns a certificate before and after a change of its status.
func updatedTexts() (before, after string) {
	before = string(certificate(1))
	return before, strings.Replace(before, `"revision":1`, `"revision":2`, 1)
}

// TestPairConcurrently verifies that concurrent handlers of one update get the same copies.
func TestPairConcurrently(t *testing.T) {
	oldText, newText := updatedTexts()
	before, after := pack(t, oldText), pack(t, newText)
	var got [8][2]*unstructured.Unstructured
	var handlers sync.WaitGroup
	for i := range got {
		handlers.Go(func() { got[i][0], got[i][1] = packed.PeekPair(before, after) })
	}
	handlers.Wait()
	for _, pair := range got {
		if pair != got[0] {
			t.Fatal("handlers got different copies")
		}
	}
}

// FuzzPair compares pairs with separately decoded objects.
func FuzzPair(f *testing.F) {
	all := unusualDocuments()
	for i, document := range all {
		f.Add([]byte(document), []byte(all[(i+1)%len(all)]))
	}
	before, after := updatedTexts()
	f.Add([]byte(before), []byte(after))
	pruned := testPackers(f)["paths"]
	f.Fuzz(func(t *testing.T, first, second []byte) {
		if strings.Count(string(first)+string(second), "[")+
			strings.Count(string(first)+string(second), "{") > 2000 {
			return
		}
		for _, packer := range []*packed.Packer{nil, pruned} {
			before, err := packer.Pack(first)
			if err != nil {
				return
			}
			after, err := packer.Pack(second)
			if err != nil {
				return
			}
			wantPrevious, err := before.Decode()
			must(t, err)
			wantCurrent, err := after.Decode()
			must(t, err)
			previous, current := packed.PeekPair(before, after)
			if !reflect.DeepEqual(wantPrevious, previous) || !reflect.DeepEqual(wantCurrent, current) {
				t.Fatalf("%q and %q: (-want +got)\n%s\n%s", first, second, cmp.Diff(wantPrevious, previous),
					cmp.Diff(wantCurrent, current))
			}
		}
	})
}
