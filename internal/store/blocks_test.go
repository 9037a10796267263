package store

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/internal/packed"
)

// perBlock is the number of objects in a block.
const perBlock = 40

// restoreBlocks fills a store with certificates in blocks, as after a restart. Objects for which isLeft
// returns true are in the blocks, but not in the store.
func restoreBlocks(t testing.TB, s *Store, objects, version int, isLeft func(n int) bool) {
	t.Helper()
	var all []KeyedItem
	for first := 0; first < objects; first += perBlock {
		var w packed.BlockWriter
		for n := first; n < min(first+perBlock, objects); n++ {
			o, err := s.format.Packer().Pack(certificate(n, version))
			if err != nil {
				t.Fatal(err)
			}
			if added, err := w.Add(o); err != nil || !added {
				t.Fatalf("Add() = %v, %v, want true", added, err)
			}
		}
		index, bodies := w.AppendBlock(nil)
		compressed := deflated(t, bodies)
		read, err := packed.ReadBlock(index,
			func() ([]byte, error) { return io.ReadAll(flate.NewReader(bytes.NewReader(compressed))) },
			len(compressed))
		if err != nil {
			t.Fatal(err)
		}
		for k, o := range read {
			if isLeft == nil || !isLeft(first+k) {
				all = append(all, KeyedItem{Key: o.Key(), Item: s.format.Item(o)})
			}
		}
	}
	if _, ok := s.Replace(s.PrepareAll(all), fmt.Sprint(version)); !ok {
		t.Fatal("Replace() = false, want true")
	}
}

// deflated returns a text compressed with DEFLATE.
func deflated(t testing.TB, text []byte) []byte {
	t.Helper()
	var compressed bytes.Buffer
	w, err := flate.NewWriter(&compressed, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(compressed.Bytes())
}

func put(t testing.TB, s *Store, n, version int) {
	t.Helper()
	if _, ok := s.Put(s.Prepare(keyedCertificate(t, s.format, n, version))); !ok {
		t.Fatal("Put() = false, want true")
	}
}

// compactAll compacts all sparse blocks.
func compactAll(s *Store) {
	for s.CompactBlocks() {
	}
}

// TestReplacedBlocksAreCompacted replaces all objects of each block except one. Stats must agree with the
// heap throughout, and the blocks must be freed.
func TestReplacedBlocksAreCompacted(t *testing.T) {
	const objects = 4000
	for name, format := range map[string]func() Format{
		"compressed": func() Format { return NewPacked(nil, s2.New(s2.Options{})) },
		"adaptive":   func() Format { return NewAdaptive(nil, s2.New(s2.Options{})) },
	} {
		t.Run(name, func(t *testing.T) {
			// one-time allocations
			replaceAll(t, New(Options{Format: format(), Indexers: byNamespace()}), 300, 1)
			s := New(Options{Format: format(), Indexers: byNamespace()})
			before := heap()
			compareWithHeap := func(state string) (size int64) {
				growth, size := heap()-before, s.Stats().Bytes()
				t.Logf("%s: %d B of heap per object, %d B by Stats", state, growth/objects, size/objects)
				if size < growth*9/10 || size > growth*11/10 {
					t.Errorf("%s: Stats().Bytes() = %d, want the growth of the heap, %d, within 10%%", state,
						size, growth)
				}
				compareWithExactStats(t, s)
				return size
			}
			restoreBlocks(t, s, objects, 1, nil)
			compareWithHeap("objects in blocks")
			initial := s.Stats().ObjectBytes
			for n := range objects {
				if n%perBlock != 7 {
					put(t, s, n, 2)
				}
			}
			if s.Adaptive() != nil { // as the Sweeper does
				sweepAll(s, SweepAfterFill)
				sweepAll(s, SweepAfterFill)
			}
			replaced := compareWithHeap("objects replaced")
			compactAll(s)
			compacted := compareWithHeap("blocks compacted")
			if len(s.blocks.usage) != 0 || replaced-compacted < initial*8/10 {
				t.Errorf("%d blocks remain and %d of %d bytes were freed, want 0 blocks and 80%%",
					len(s.blocks.usage),
					replaced-compacted, initial)
			}
			model := map[int]int{}
			for n := range objects {
				if model[n] = 2; n%perBlock == 7 {
					model[n] = 1
				}
			}
			expectObjects(t, s.Snapshot(), model)
			runtime.KeepAlive(s)
		})
	}
}

// expectObjects compares a snapshot with a model: the version of each certificate.
func expectObjects(t testing.TB, now *Snapshot, model map[int]int) {
	t.Helper()
	if now.Len() != len(model) {
		t.Errorf("%d objects, want %d", now.Len(), len(model))
	}
	for n, version := range model {
		key := fmt.Sprintf("tenant-%d/certificate-%d", n%100, n)
		item, found := now.Get(key)
		if !found {
			t.Fatalf("%s is missing", key)
		}
		if text, err := item.(*packed.Object).AppendJSON(nil); err != nil ||
			!bytes.Equal(text, certificate(n, version)) {
			t.Fatalf("%s is %s, %v; want version %d", key, text, err, version)
		}
	}
}

// expectExactBlockUsage compares a store's blocks and sizes with its rows.
func expectExactBlockUsage(t testing.TB, s *Store) {
	t.Helper()
	s.write.Lock()
	defer s.write.Unlock()
	now := s.current.Load()
	var rows []hashedEntry[*storedRow]
	for r := range now.rows.all {
		rows = append(rows, hashedEntry[*storedRow]{entry: r})
	}
	var want blocks
	sums := objectSizes{replaced: now.sizes.replaced - int64(len(rows))}
	want.countAll(&sums, rows)
	if sums != now.sizes {
		t.Fatalf("sizes = %+v, want %+v", now.sizes, sums)
	}
	living := func(b *blocks) map[*packed.Block]int {
		all := map[*packed.Block]int{}
		for block, h := range b.usage {
			all[block] = h.liveObjects
		}
		return all
	}
	if !maps.Equal(living(&want), living(&s.blocks)) {
		t.Fatalf("%d blocks are counted, want %d", len(s.blocks.usage), len(want.usage))
	}
	for block := range s.blocks.sparse {
		if s.blocks.usage[block] == nil {
			t.Fatal("the sparse blocks include one without objects")
		}
	}
}

// expectBoundedRetention checks that a remaining block needs at most about twice the memory of its remaining
// objects.
func expectBoundedRetention(t testing.TB, s *Store) {
	t.Helper()
	for block, h := range s.blocks.usage {
		inside, outside := 0, 0
		block.Objects(func(o *packed.Object, extract func() (*packed.Object, error)) bool {
			if s.lookup(o.Key()) != o {
				return true
			}
			own, err := extract()
			if err != nil {
				t.Fatal(err)
			}
			if f := s.format.(*Packed); f.compressor != nil {
				own = f.compressor.compress(own)
			}
			inside, outside = inside+o.Size(), outside+own.Size()
			return true
		})
		const rounding = 500 // bytes of a block that are not part of an object
		if most := 2*max(inside, outside) + rounding; block.Size() > most {
			t.Errorf("a block of %d bytes remains for %d objects, which need %d bytes in it and %d outside",
				block.Size(), h.liveObjects, inside, outside)
		}
	}
}

// TestBlocksInHistories applies random writes, lists and sweeps to stores with blocks, and compares them with
// a model.
func TestBlocksInHistories(t *testing.T) {
	const keys, steps = 200, 300
	for name, format := range map[string]func() *Packed{
		"packed":     func() *Packed { return NewPacked(nil, nil) },
		"compressed": func() *Packed { return NewPacked(nil, prefixCompressor{}) },
		"adaptive":   func() *Packed { return NewAdaptive(nil, prefixCompressor{}) },
	} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				s := New(Options{Format: format(), Indexers: byNamespace()})
				left := func(n int) bool { return n%7 == 0 && n < keys/2 }
				restoreBlocks(t, s, keys, 1, left)
				model := map[int]int{}
				for n := range keys {
					if !left(n) {
						model[n] = 1
					}
				}
				expectExactBlockUsage(t, s)
				for step := range steps {
					n := random.IntN(keys)
					key := fmt.Sprintf("tenant-%d/certificate-%d", n%100, n)
					switch random.IntN(12) {
					default:
						put(t, s, n, 2+step)
						model[n] = 2 + step
					case 0, 1:
						s.Remove(key, "")
						delete(model, n)
					case 2: // the same version again
						if version, found := model[n]; found {
							put(t, s, n, version)
						}
					case 3: // an earlier version again, possibly out of a block
						if o := s.lookup(key); o != nil {
							before := model[n]
							put(t, s, n, 2+step)
							s.CompactBlocks()
							if _, ok := s.Put(s.Prepare(KeyedItem{Key: key, Item: o})); !ok {
								t.Fatal("Put() = false, want true")
							}
							model[n] = before
						}
					case 4:
						if s.Adaptive() != nil {
							sweepAll(s, []Sweep{SweepPeriodic, SweepUnread, SweepAll}[random.IntN(3)])
							if o := s.lookup(key); o != nil {
								s.format.Object(o) // a reader
							}
						}
					case 5:
						if step%5 == 0 {
							relist(t, s, model)
						}
					case 6:
						s.CompactBlocks()
					}
					expectExactBlockUsage(t, s)
				}
				compactAll(s)
				expectExactBlockUsage(t, s)
				expectBoundedRetention(t, s)
				expectObjects(t, s.Snapshot(), model)
				for next := s.ExtractBlocks(0); next != 0; next = s.ExtractBlocks(next) {
				}
				if s.ShouldExtractBlocks() && len(s.blocks.usage) > 0 {
					t.Errorf("%d blocks remain, want 0", len(s.blocks.usage))
				}
				expectExactBlockUsage(t, s)
				expectObjects(t, s.Snapshot(), model)
			})
		}
	}
}

// TestBlocksAreCompactedBesideReaders reads snapshots while objects are replaced and blocks are compacted.
// Each snapshot must keep its objects.
func TestBlocksAreCompactedBesideReaders(t *testing.T) {
	const objects = 120
	for name, format := range map[string]*Packed{
		"compressed": NewPacked(nil, prefixCompressor{}),
		"adaptive":   NewAdaptive(nil, prefixCompressor{}),
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Format: format, Indexers: byNamespace()})
			restoreBlocks(t, s, objects, 1, nil)
			// snapshots with their expected content
			type moment struct {
				now   *Snapshot
				model map[int]int
			}
			snapshots := make(chan moment)
			var goroutines sync.WaitGroup
			for range 2 {
				goroutines.Go(func() { // ended by moments
					for m := range snapshots {
						expectObjectTexts(t, m.now, m.model)
					}
				})
			}
			stop := make(chan struct{})
			goroutines.Go(func() { // ended by stop
				for next := uint64(0); ; {
					select {
					case <-stop:
						return
					default:
					}
					if !s.CompactBlocks() {
						runtime.Gosched()
					}
					if s.Adaptive() != nil {
						next = s.Sweep(next, SweepPeriodic).Next
					}
				}
			})
			model := map[int]int{}
			for n := range objects {
				model[n] = 1
			}
			random := rand.New(rand.NewPCG(1, 1))
			for step := range 20 {
				snapshots <- moment{s.Snapshot(), maps.Clone(model)}
				for range 15 {
					n := random.IntN(objects)
					put(t, s, n, 2+step)
					model[n] = 2 + step
				}
			}
			close(snapshots)
			close(stop)
			goroutines.Wait()
			compactAll(s)
			expectExactBlockUsage(t, s)
			expectBoundedRetention(t, s)
			expectObjects(t, s.Snapshot(), model)
		})
	}
}

// expectObjectTexts is expectObjects for goroutines other than the test's: it does not call FailNow.
func expectObjectTexts(t testing.TB, now *Snapshot, model map[int]int) {
	got, want := map[string]string{}, map[string]string{}
	for key, item := range now.All {
		text, err := item.(*packed.Object).AppendJSON(nil)
		if err != nil {
			t.Error(err)
		}
		got[key] = string(text)
	}
	for n, version := range model {
		want[fmt.Sprintf("tenant-%d/certificate-%d", n%100, n)] = string(certificate(n, version))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
