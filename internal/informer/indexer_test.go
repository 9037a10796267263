package informer

import (
	"fmt"
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/store"
)

// TestReadersDoNotWaitForLists verifies that reads succeed while a list is being prepared, and while another
// goroutine holds the informer's lock.
func TestReadersDoNotWaitForLists(t *testing.T) {
	reads := 0
	var i *Informer
	read := func() {
		reads++
		objects, err := i.GetIndexer().ByIndex("all", "")
		_, exists, _ := i.GetStore().GetByKey("ns/object-7")
		if err != nil || len(objects) != 100 || !exists || len(i.GetStore().List()) != 100 ||
			len(i.GetStore().ListKeys()) != 100 {
			t.Errorf("%d objects by index (%v), want 100 from each read method", len(objects), err)
		}
	}
	relists := false
	i = New(nil, Options{Format: store.NewPacked(nil, nil),
		Indexers: cache.Indexers{"all": func(any) ([]string, error) {
			if relists {
				read()
			}
			return []string{""}, nil
		}}})
	list := func(spec string) []any {
		var all []any
		for n := range 100 {
			o, err := i.store.Format().Packer().Pack(fmt.Appendf(nil,
				`{"apiVersion":"v1","kind":"A","metadata":{"namespace":"ns","name":"object-%d"},"spec":%q}`,
				n, spec))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, o)
		}
		return all
	}
	g, err := i.beginIncarnation(t.Context(), func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { i.endIncarnation(g); i.Stop(); <-i.Stopped() }()
	p := g.partition(&Partition{})
	g.runOnly(p)
	if err := p.Replace(list("a"), "1"); err != nil {
		t.Fatal(err)
	}
	relists = true
	if err := p.Replace(list("b"), "2"); err != nil || reads < 100 {
		t.Errorf("%d reads while a list was being prepared (%v), want at least 100", reads, err)
	}
	i.mu.Lock()
	read()
	i.mu.Unlock()
}

// TestGetByKeyAllocatesNothing verifies that GetStore().GetByKey of a decoded object does not allocate.
func TestGetByKeyAllocatesNothing(t *testing.T) {
	f := New(nil, Options{Format: store.NewPacked(nil, nil)})
	o, err := f.store.Format().Packer().Pack([]byte(
		`{"apiVersion":"v1","kind":"A","metadata":{"namespace":"ns","name":"object"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.GetIndexer().Add(o); err != nil {
		t.Fatal(err)
	}
	hot, _, _ := f.GetStore().GetByKey("ns/object") // is kept in memory by the comparison below
	allocations := testing.AllocsPerRun(100, func() {
		if found, exists, _ := f.GetStore().GetByKey("ns/object"); !exists || found != hot {
			t.Error("GetByKey did not return the decoded object")
		}
	})
	if allocations > 0 {
		t.Errorf("GetByKey makes %v allocations, want 0", allocations)
	}
}
