package store

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/internal/packed"
)

// keyedIdentity returns an object as it arrives from the server.
func keyedIdentity(t testing.TB, s *Store, namespace, name, uid, version string) KeyedItem {
	t.Helper()
	o, err := s.format.Packer().Pack(fmt.Appendf(nil,
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":%q},"spec":{"big":%q}}`,
		name, namespace, uid, version, strings.Repeat("x", 300)))
	must(t, err)
	return KeyedItem{Key: o.Key(), ResourceVersion: version, Item: s.format.Item(o)}
}

const identityUID = "01234567-89ab-cdef-0123-456789abcdef"

// identities are unusual and usual values, with and without identity rows.
var identities = []struct{ namespace, name, uid, version string }{
	{"ns", "usual", identityUID, "12345"},
	{"", "cluster-scoped", identityUID, "1"},
	{"ns", "x", identityUID, "0"},
	{"ns", strings.Repeat("n", 253), identityUID, fmt.Sprint(uint64(maxIdentityRV))},
	{"ns", "version-too-large", identityUID, fmt.Sprint(uint64(maxIdentityRV) + 1)},
	{"ns", "version-larger", identityUID, fmt.Sprint(uint64(math.MaxUint64))},
	{"ns", "leading-zero", identityUID, "012"},
	{"ns", "opaque-version", identityUID, "a1"},
	{"ns", "no-version", identityUID, ""},
	{"ns", "uid-in-capitals", strings.ToUpper(identityUID), "7"},
	{"ns", "uid-in-words", "some uid", "7"},
	{"ns", "no-uid", "", "7"},
	{"ns", strings.Repeat("n", maxIdentityKey), identityUID, "7"},
}

// TestIdentities verifies that a store without objects returns key, UID and resource version of each, in any
// form, after a list and after single writes, and retains nothing else of the objects.
func TestIdentities(t *testing.T) {
	for _, variant := range []string{"list", "write"} {
		t.Run(variant, func(t *testing.T) {
			s := New(Options{Format: NewIdentities(nil)})
			var all []KeyedItem
			freed := make(chan string, len(identities))
			for _, id := range identities {
				o := keyedIdentity(t, s, id.namespace, id.name, id.uid, id.version)
				runtime.AddCleanup(o.Item.(*packed.Object), func(name string) { freed <- name }, id.name)
				if variant == "list" {
					all = append(all, o)
				} else if _, ok := s.Put(s.Prepare(o)); !ok {
					t.Fatal("refused")
				}
			}
			if variant == "list" {
				if _, ok := s.Replace(s.PrepareAll(all), "9"); !ok {
					t.Fatal("refused")
				}
			}
			all = nil
			for range identities {
				runtime.GC()
				<-freed
			}
			for _, id := range identities {
				key := strings.TrimPrefix(id.namespace+"/"+id.name, "/")
				item, found := s.Snapshot().Get(key)
				if !found {
					t.Errorf("%s is missing", key)
					continue
				}
				o := item.(*packed.Object)
				got := []string{o.Key(), o.GetNamespace(), o.GetName(), string(o.UID()), o.Version(),
					o.GetKind()}
				want := []string{key, id.namespace, id.name, id.uid, id.version, "PartialObjectMetadata"}
				if diff := cmp.Diff(want, got); diff != "" || !o.IsIdentity() {
					t.Errorf("identity %v (-want +got):\n%s", o.IsIdentity(), diff)
				}
				if old := s.Remove(key, ""); old == nil {
					t.Errorf("%s was not removed", key)
				}
			}
			if n := s.Snapshot().Len(); n != 0 {
				t.Errorf("%d objects remain after all were removed, want 0", n)
			}
			if got := s.Stats().Bytes(); got != 0 {
				t.Errorf("Stats().Bytes() of an empty store = %d, want 0", got)
			}
		})
	}
}

// TestIdentityDifferences verifies that the differences of a list have the arriving objects as new items,
// and identities as old ones. Rows of unchanged objects stay.
func TestIdentityDifferences(t *testing.T) {
	s := New(Options{Format: NewIdentities(nil)})
	object := func(name, version string) KeyedItem {
		return keyedIdentity(t, s, "ns", name, identityUID, version)
	}
	if _, ok := s.Replace(s.PrepareAll([]KeyedItem{object("same", "1"), object("changed", "2"),
		object("removed", "3")}), "3"); !ok {
		t.Fatal("refused")
	}
	isSame := s.current.Load().rows.find("ns/same")
	d, ok := s.Replace(s.PrepareAll([]KeyedItem{object("added", "3"), object("same", "1"), object("changed", "4"),
		object("added", "5")}), "5")
	if !ok {
		t.Fatal("refused")
	}
	describe := func(item Item) string {
		if item == nil {
			return "nothing"
		}
		o := item.(*packed.Object)
		return fmt.Sprintf("%s at %s, identity %v", o.Key(), o.Version(), o.IsIdentity())
	}
	var got []string
	for n := range d.Len() {
		c := d.At(n)
		got = append(got, c.Key+": "+describe(c.Old)+" → "+describe(c.New))
	}
	want := []string{
		"ns/removed: ns/removed at 3, identity true → nothing",
		"ns/added: nothing → ns/added at 5, identity false",
		"ns/same: ns/same at 1, identity true → ns/same at 1, identity false",
		"ns/changed: ns/changed at 2, identity true → ns/changed at 4, identity false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	if s.current.Load().rows.find("ns/same") != isSame {
		t.Error("the row of an unchanged object was replaced")
	}
}
