package requests

import (
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	shards "github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/internal/packed"
)

// FuzzShardHash compares hashes with hash/fnv, and the selection of arriving and stored objects.
func FuzzShardHash(f *testing.F) {
	for _, value := range []string{"", "a", "kube-system", "team-01", "0b0e6e5c-8d0a-4a6c-9f5e-0a1b2c3d4e5f",
		"ü", "\xff\xfe", "\x00", `"\`, "</script>", "\u2028", "🎉"} {
		f.Add(value, "ns", uint64(0), uint64(1)<<63)
		f.Add("uid", value, uint64(1)<<63, uint64(0))
	}
	f.Fuzz(func(t *testing.T, uid, namespace string, start, end uint64) {
		hash := fnv.New64a()
		hash.Write([]byte(uid))
		if want := hash.Sum64(); shards.Hash(uid) != want {
			t.Fatalf("the hash of %q is %x, want %x", uid, shards.Hash(uid), want)
		}
		ranges := NewRanges(shards.Range{Start: start, End: end})
		if len(ranges) == 0 {
			return
		}
		text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Thing",
			"metadata": map[string]any{
				"name": "x", "uid": uid, "namespace": namespace,
			}})
		must(t, err)
		decoded := &unstructured.Unstructured{}
		must(t, decoded.UnmarshalJSON(text))
		for _, key := range []shards.Key{shards.ByUID, shards.ByNamespace} {
			want := ranges.Contains(key.Hash(decoded))
			s := NewSelection(key, func() Ranges { return ranges }, nil, nil)
			packer := packed.NewPacker(nil)
			admitted := packer.WithFilter(s.admitUnpacked).TryPack(text) != packed.Filtered
			if o := packer.TryPack(text); admitted != want || s.Has(decoded) != want || o != nil &&
				s.Has(o) != want || s.admitsObject(decoded) != want {
				t.Errorf("%s of %s in %v: %v unpacked, %v decoded; want %v", key, text, ranges, admitted,
					s.Has(decoded), want)
			}
		}
	})
}

// TestRanges compares the operations of Ranges with sets of hashes of a small space.
func TestRanges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const step, points = 1 << 60, 16
	sample := func() (Ranges, [points]bool) {
		var ranges []shards.Range
		var contains [points]bool
		for range random.IntN(5) {
			start, end := random.Uint64N(points), random.Uint64N(points+1)
			// The end of the hash space wraps around to zero.
			ranges = append(ranges, shards.Range{Start: start * step, End: end * step})
			for p := start; p < end; p++ {
				contains[p] = true
			}
			if end == 0 { // up to the end of the space
				for p := start; p < points; p++ {
					contains[p] = true
				}
			}
		}
		return NewRanges(ranges...), contains
	}
	check := func(operation string, ranges Ranges, want func(p int) bool) {
		t.Helper()
		for p := range points {
			for _, hash := range []uint64{uint64(p) * step, uint64(p)*step + step - 1} {
				if ranges.Contains(hash) != want(p) {
					t.Fatalf("%s: %v contains %x = %v, want %v", operation, ranges, hash, !want(p), want(p))
				}
			}
		}
		if diff := cmp.Diff(ranges, NewRanges(ranges...)); diff != "" {
			t.Fatalf("%s is not normalized (-got +normalized):\n%s", operation, diff)
		}
	}
	for range 2000 {
		a, inA := sample()
		b, inB := sample()
		check("one", a, func(p int) bool { return inA[p] })
		check("and", a.And(b), func(p int) bool { return inA[p] && inB[p] })
		check("or", a.Or(b), func(p int) bool { return inA[p] || inB[p] })
		check("minus", a.Minus(b), func(p int) bool { return inA[p] && !inB[p] })
	}
}

// TestManyRanges verifies that a selector stays short, and selects the ranges with few additional hashes.
func TestManyRanges(t *testing.T) {
	var odd []shards.Range
	for i, r := range shards.Split(1000) {
		if i%2 == 1 {
			odd = append(odd, r)
		}
	}
	owned := NewRanges(odd...)
	dropped := &atomic.Int64{}
	s := NewSelection(shards.ByUID, func() Ranges { return owned }, nil, dropped)
	options := metav1.ListOptions{ResourceVersion: "0"}
	selector := s.prepareList(&options).selector
	requested := *s.requested.Load()
	if len(requested) != maxSelectorTerms || len(owned.Minus(requested)) > 0 ||
		selector != requested.Selector(shards.ByUID) || len(selector) > 6000 {
		t.Errorf("%d ranges are requested for, %v are not, by %d bytes", len(requested), owned.Minus(requested),
			len(selector))
	}
	if options.ResourceVersion != "" {
		t.Errorf("the request has the resource version %q, want none", options.ResourceVersion)
	}
	for i := range 1000 {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetUID(types.UID(string(rune('a' + i))))
		if s.admitsObject(u) != owned.Contains(shards.Hash(string(u.GetUID()))) {
			t.Errorf("admitsObject(%s) = %v, which differs from its hash", u.GetUID(), s.admitsObject(u))
		}
	}
	if dropped.Load() == 0 || s.Filter() != shards.FilterUnknown && s.unrequested.Load() == 0 {
		t.Errorf("%d objects were dropped, %d of them outside of the requested ranges", dropped.Load(),
			s.unrequested.Load())
	}
}

// TestSplitHashSpace verifies that the ranges are adjacent, of nearly the same size, and cover the space.
func TestSplitHashSpace(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 64, 1000} {
		ranges := shards.Split(n)
		if len(ranges) != n || ranges[0].Start != 0 || ranges[n-1].End != 0 {
			t.Fatalf("Split(%d) = %v, want adjacent ranges of the full space", n, ranges)
		}
		for i := 1; i < n; i++ {
			if ranges[i].Start != ranges[i-1].End {
				t.Errorf("Split(%d): %v does not start at the end of %v", n, ranges[i], ranges[i-1])
			}
			if a, b := lastHash(ranges[i])-ranges[i].Start, lastHash(ranges[i-1])-ranges[i-1].Start; max(a,
				b)-min(a, b) > 1 {
				t.Errorf("Split(%d): the sizes of %v and %v differ by more than 1", n, ranges[i], ranges[i-1])
			}
		}
	}
	if shards.Split(0) != nil || shards.Split(-1) != nil {
		t.Error("Split(0) or Split(-1) returned ranges, want nil")
	}
}
