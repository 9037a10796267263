package store

import "testing"

// TestRelistsReuseObjects checks that a relist reuses stored packed objects.
func TestRelistsReuseObjects(t *testing.T) {
	form := NewPacked(withoutManagedFields(t), nil)
	s := New(Options{Form: form, Indexers: byNamespace()})
	fill(t, s, 100, 1)
	for n := range 100 {
		keyed := keyedCertificate(t, form, n, 1)
		if had, _ := s.Snapshot().Get(keyed.Key); keyed.Item != had {
			t.Fatalf("%s is in memory twice", keyed.Key)
		}
	}
	changed := keyedCertificate(t, form, 7, 2)
	if had, _ := s.Snapshot().Get(changed.Key); changed.Item == had {
		t.Error("a new version is reused as the old one")
	}
}
