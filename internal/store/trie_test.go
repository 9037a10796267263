package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pair is an entry of the tries under test.
type pair struct {
	key   string
	value int
}

// hashMasks lead to hashes and tries of very different shapes.
var hashMasks = map[string]uint64{"good": ^uint64(0), "constant": 0, "low bits": 0x3ff,
	"top bits": ^uint64(1<<60 - 1)}

// withHashMasks runs test with different hashes.
func withHashMasks(t *testing.T, test func(t *testing.T)) {
	defer func() { hashMask = ^uint64(0) }()
	for name, mask := range hashMasks {
		hashMask = mask
		t.Run(name, test)
	}
}

// TestTrieIsAMap compares random histories with a map, and every earlier trie with its original content.
func TestTrieIsAMap(t *testing.T) {
	withHashMasks(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		model := map[string]int{}
		type version struct {
			trie trie[pair]
			held map[string]int
		}
		var versions []version
		var now trie[pair]
		for step := range 4000 {
			key := fmt.Sprint(random.IntN(300))
			if random.IntN(3) == 0 || step > 3500 {
				now = now.without(key)
				delete(model, key)
			} else {
				now = now.with(&pair{key, step})
				model[key] = step
			}
			found := now.find(key)
			if want, held := model[key]; (found != nil) != held || held && found.value != want {
				t.Fatalf("step %d: found %+v; want %v, %v", step, found, want, held)
			}
			if step%200 == 0 {
				versions = append(versions, version{now, maps.Clone(model)})
			}
		}
		for _, v := range append(versions, version{now, model}) {
			if diff := cmp.Diff(v.held, content(t, v.trie)); diff != "" {
				t.Fatal(diff)
			}
			for key, value := range v.held {
				found := v.trie.find(key)
				if found == nil || found.value != value {
					t.Errorf("%s: found %v; want %d", key, found, value)
				}
			}
		}
	})
}

// TestTrieRemovesAll verifies that no nodes remain after all entries have been removed.
func TestTrieRemovesAll(t *testing.T) {
	withHashMasks(t, func(t *testing.T) {
		var now trie[pair]
		for n := range 1000 {
			key := fmt.Sprint(n)
			now = now.with(&pair{key, n})
		}
		for n := range 1000 {
			key := fmt.Sprint(n)
			now = now.without(key)
			if now.len != 999-n {
				t.Fatalf("%d entries are left of %d", now.len, 999-n)
			}
		}
		if now.inner != nil || now.leaf != nil {
			t.Errorf("nodes are left: %+v", now)
		}
	})
}

func content(t *testing.T, tr trie[pair]) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for p := range tr.all {
		if _, twice := seen[p.key]; twice {
			t.Errorf("%s is duplicated", p.key)
		}
		seen[p.key] = p.value
	}
	if len(seen) != tr.len {
		t.Errorf("the trie yields %d entries, but its len is %d", len(seen), tr.len)
	}
	return seen
}
