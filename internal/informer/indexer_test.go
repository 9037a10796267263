package informer

import (
	"fmt"
	"testing"

	"github.com/crdcache/crdcache/internal/store"
)

// TestGetByKeyAllocatesNothing looks a hot object up in the way that client-go's users do.
func TestGetByKeyAllocatesNothing(t *testing.T) {
	f := New(nil, Options{Form: store.NewPacked(nil, nil)})
	for n := range 1000 {
		o, err := f.Form().Packer().Pack(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"A","metadata":{"namespace":"ns","name":"object-%d"}}`, n))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.GetIndexer().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	hot, _, _ := f.GetStore().GetByKey("ns/object-7")
	allocations := testing.AllocsPerRun(100, func() {
		if found, exists, _ := f.GetStore().GetByKey("ns/object-7"); !exists || found != hot {
			t.Error("it is missing or not hot")
		}
	})
	if allocations > 0 {
		t.Errorf("a look-up allocates %v times", allocations)
	}
}
