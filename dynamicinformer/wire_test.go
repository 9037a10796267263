package dynamicinformer

import (
	"strings"
	"testing"

	"github.com/crdcache/crdcache/internal/store"
)

// TestWire checks how the storage options determine requests and packing.
func TestWire(t *testing.T) {
	const object = `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"managedFields":[{"manager":"m"}],"name":"g"}}`
	managed := Prune{Presets: []PrunePreset{PruneManagedFields}}
	for name, tt := range map[string]struct {
		options          ResourceOptions
		metadata, pruned bool
	}{
		"default": {},
		"packed":  {options: ResourceOptions{Storage: Storage{Mode: StoragePacked}}},
		"transformed": {options: ResourceOptions{Transform: func(o any) (any, error) {
			return o,
				nil
		}}},
		"pruned":             {options: ResourceOptions{Prune: managed}, pruned: true},
		"StripManagedFields": {options: ResourceOptions{Transform: StripManagedFields}, pruned: true},
		"object":             {options: ResourceOptions{Storage: Storage{Mode: StorageObject}}},
		"object, pruned": {options: ResourceOptions{Storage: Storage{Mode: StorageObject},
			Prune: managed}, pruned: true},
		"metadata": {options: ResourceOptions{Storage: Storage{Mode: StorageMetadata}},
			metadata: true},
	} {
		form, _, err := tt.options.storeFormat(widgets.GroupResource(), &store.Dictionaries{})
		if err != nil {
			t.Fatal(err)
		}
		wire := tt.options.objectOptions(form)
		if wire.Metadata != tt.metadata {
			t.Errorf("%s: wire format %+v, want metadata %v", name, wire, tt.metadata)
		}
		o, err := wire.Packer.Pack([]byte(object))
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := o.JSON(); strings.Contains(text, "managedFields") == tt.pruned {
			t.Errorf("%s: the packed JSON is %s, want it without managed fields: %v", name, text, tt.pruned)
		}
	}
}
