package store

import (
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pair is an entry of the tries under test.
type pair struct {
	key   string
	value int
}

// hashes are hash functions that lead to tries of very different shapes.
var hashes = map[string]func(string) uint64{
	"good":     func(key string) uint64 { return maphash.String(testSeed, key) },
	"constant": func(string) uint64 { return 42 },
	"low bits": func(key string) uint64 { return maphash.String(testSeed, key) & 0x3ff },
	"top bits": func(key string) uint64 { return maphash.String(testSeed, key) &^ (1<<60 - 1) },
}

var testSeed = maphash.MakeSeed()

// TestTrieIsAMap compares random histories with a map, and every earlier trie with its original content.
func TestTrieIsAMap(t *testing.T) {
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			of := func(p *pair) uint64 { return hash(p.key) }
			model := map[string]int{}
			type version struct {
				trie trie[pair]
				held map[string]int
			}
			var versions []version
			var now trie[pair]
			for step := range 4000 {
				key := fmt.Sprint(random.IntN(300))
				match := func(p *pair) bool { return p.key == key }
				if random.IntN(3) == 0 || step > 3500 {
					now = now.withoutEntry(hash(key), match, of)
					delete(model, key)
				} else {
					now = now.with(hash(key), &pair{key, step}, match, of)
					model[key] = step
				}
				found, ok := now.find(hash(key), match)
				if want, held := model[key]; ok != held || ok && found.value != want {
					t.Fatalf("step %d: found %+v, %v; want %v, %v", step, found, ok, want, held)
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
					found, ok := v.trie.find(hash(key), func(p *pair) bool { return p.key == key })
					if !ok || found.value != value {
						t.Errorf("%s: found %v, %v; want %d", key, found, ok, value)
					}
				}
			}
		})
	}
}

// TestTrieRemovesAll removes all entries: no nodes remain.
func TestTrieRemovesAll(t *testing.T) {
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			of := func(p *pair) uint64 { return hash(p.key) }
			var now trie[pair]
			for n := range 1000 {
				key := fmt.Sprint(n)
				now = now.with(hash(key), &pair{key, n}, func(p *pair) bool { return p.key == key }, of)
			}
			for n := range 1000 {
				key := fmt.Sprint(n)
				now = now.withoutEntry(hash(key), func(p *pair) bool { return p.key == key }, of)
				if now.len != 999-n {
					t.Fatalf("%d entries are left of %d", now.len, 999-n)
				}
			}
			if now.inner != nil || now.leaf != nil {
				t.Errorf("nodes are left: %+v", now)
			}
		})
	}
}

// TestBuildTrie compares tries from buildTrie with tries built entry by entry.
func TestBuildTrie(t *testing.T) {
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			of := func(p *pair) uint64 { return hash(p.key) }
			for _, size := range []int{0, 1, 2, leafMax, leafMax + 1, 200, 1000} {
				var grown trie[pair]
				var entries []hashedEntry[*pair]
				for n := range size {
					p := &pair{fmt.Sprint(n), n}
					entries = append(entries, hashedEntry[*pair]{of(p), p})
					grown = grown.with(of(p), p, func(have *pair) bool { return *have == *p }, of)
				}
				sortHashed(entries)
				built := buildTrie(entries)
				if diff := cmp.Diff(content(t, grown), content(t, built)); diff != "" {
					t.Errorf("%d entries: %s", size, diff)
				}
				for n := range size {
					key := fmt.Sprint(n)
					if _, ok := built.find(hash(key), func(p *pair) bool { return p.key == key }); !ok {
						t.Errorf("%d entries: %s is missing", size, key)
					}
				}
			}
		})
	}
}

func TestTrieIterationEnds(t *testing.T) {
	var now trie[pair]
	for n := range 100 {
		p := &pair{fmt.Sprint(n), n}
		now = now.with(hashes["good"](p.key), p, func(have *pair) bool { return *have == *p },
			func(p *pair) uint64 { return hashes["good"](p.key) })
	}
	var seen []int
	for p := range now.all {
		if seen = append(seen, p.value); len(seen) == 40 {
			break
		}
	}
	slices.Sort(seen)
	if len(slices.Compact(seen)) != 40 {
		t.Errorf("%d entries were seen", len(seen))
	}
}

func content(t *testing.T, tr trie[pair]) map[string]int {
	t.Helper()
	held := map[string]int{}
	for p := range tr.all {
		if _, twice := held[p.key]; twice {
			t.Errorf("%s is duplicated", p.key)
		}
		held[p.key] = p.value
	}
	if len(held) != tr.len {
		t.Errorf("there are %d entries, and len is %d", len(held), tr.len)
	}
	return held
}

// TestLeavesAreFilled checks that leaves are at least half full on average for any number of entries.
func TestLeavesAreFilled(t *testing.T) {
	var now trie[pair]
	of := func(p *pair) uint64 { return hashes["good"](p.key) }
	for n := range 20_000 {
		p := &pair{fmt.Sprint(n), n}
		now = now.with(of(p), p, func(have *pair) bool { return have.key == p.key }, of)
		if n%500 != 499 {
			continue
		}
		leaves := 0
		var count func(*innerNode[pair], *leafNode[pair]) bool
		count = func(child *innerNode[pair], l *leafNode[pair]) bool {
			if child != nil {
				return child.distinct(count)
			}
			leaves++
			return true
		}
		now.inner.distinct(count)
		if now.len < leaves*leafMax/2 {
			t.Errorf("%d entries are in %d leaves", now.len, leaves)
		}
	}
}

// TestLeafNext compares the comparison of eight tags at a time with single ones: it misses none and rarely
// finds false ones.
func TestLeafNext(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	vain := 0
	for range 5000 {
		size := random.IntN(leafMax + 4)
		l := makeLeaf[pair](size)
		for at := range size {
			l.set(at, random.Uint64N(4), &pair{})
		}
		hash := random.Uint64N(4)
		seen := map[int]bool{}
		for at := l.next(0, hash); at >= 0; at = l.next(at+1, hash) {
			if seen[at] || at >= size {
				t.Fatalf("place %d of %d comes twice or is none", at, size)
			}
			seen[at] = true
			if at < leafMax && l.tags[at] != hashTag(hash) {
				vain++
			}
		}
		for at := range size {
			if (at >= leafMax || l.tags[at] == hashTag(hash)) && !seen[at] {
				t.Fatalf("place %d of %d was passed over", at, size)
			}
		}
	}
	if vain > 5000 {
		t.Errorf("%d places were looked at in vain", vain)
	}
}

func (t *trie[E]) find(hash uint64, match func(*E) bool) (found *E, ok bool) {
	if l := t.leafOf(hash); l != nil {
		if at := l.find(hash, match); at >= 0 {
			return l.entries[at], true
		}
	}
	return found, false
}
