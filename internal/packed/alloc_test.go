//go:build !race

package packed_test

import (
	"testing"

	"github.com/crdcache/crdcache/internal/packed"
)

// TestMemory checks that packing allocates only the Object and its text. The race detector empties pools at
// random, so this file is not built with it.
func TestMemory(t *testing.T) {
	packer := testPackers(t)["presets"]
	data := certificate(1)
	var o *packed.Object
	if n := testing.AllocsPerRun(100, func() { o = packer.TryPack(data) }); n > 2 {
		t.Errorf("packing makes %v allocations, want at most 2", n)
	}
	if beside := o.Size() - packed.AllocationSize(o.Len()+len(o.Key())); beside > 64 {
		t.Errorf("%d bytes in addition to the text and the key, want at most 64", beside)
	}
	for name, f := range map[string]func(){
		"Key": func() { _ = o.Key() }, "GetName": func() { _ = o.Name() }, "GetUID": func() { _ = o.UID() },
		"GetResourceVersion": func() { _ = o.Version() },
		"Labels":             func() { _ = o.Labels().Get("env") },
		"GroupVersionKind":   func() { _ = o.GroupVersionKind() },
		"ReadJSON":           func() { _ = o.ReadJSON(func([]byte) error { return nil }) },
	} {
		if n := testing.AllocsPerRun(100, f); n > 0 {
			t.Errorf("%s makes %v allocations, want 0", name, n)
		}
	}
	if o.Decoded() != nil {
		t.Error("a getter decoded the object")
	}
}
