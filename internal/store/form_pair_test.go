package store

import (
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestPairCounts reads an object before and after an update, first decoding and then from memory.
func TestPairCounts(t *testing.T) {
	form := NewPacked(nil, nil)
	before, after := keyedCertificate(t, form, 1, 1).Item, keyedCertificate(t, form, 1, 2).Item
	previous, current := form.Pair(before, after)
	if hits, misses := form.Decodes(); hits != 0 || misses != 2 {
		t.Errorf("%d hits and %d misses, want 0 and 2", hits, misses)
	}
	for range 2 {
		if old, new := form.Pair(before, after); old != previous || new != current {
			t.Error("decoded again")
		}
	}
	if hits, misses := form.Decodes(); hits != 4 || misses != 2 {
		t.Errorf("%d hits and %d misses, want 4 and 2", hits, misses)
	}
	odd := &unstructured.Unstructured{}
	if old, new := form.Pair(odd, after); old != any(odd) || new != current {
		t.Error("an unpacked item is not returned unchanged")
	}
	runtime.KeepAlive([]any{previous, current})
}
