package packed_test

import (
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/packed"
)

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
			if err != nil {
				t.Fatal(err)
			}
			wantCurrent, err := after.Decode()
			if err != nil {
				t.Fatal(err)
			}
			previous, current := packed.PeekPair(before, after)
			if !reflect.DeepEqual(wantPrevious, previous) || !reflect.DeepEqual(wantCurrent, current) {
				t.Fatalf("%q and %q: (-want +got)\n%s\n%s", first, second, cmp.Diff(wantPrevious, previous),
					cmp.Diff(wantCurrent, current))
			}
		}
	})
}
