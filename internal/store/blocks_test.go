package store

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

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
			must(t, err)
			if added, err := w.Add(o); err != nil || !added {
				t.Fatalf("Add() = %v, %v, want true", added, err)
			}
		}
		index, bodies := w.AppendBlock(nil)
		compressed := deflated(t, bodies)
		read, err := packed.ReadBlock(index,
			func() ([]byte, error) { return io.ReadAll(flate.NewReader(bytes.NewReader(compressed))) },
			len(compressed))
		must(t, err)
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
	must(t, err)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	must(t, w.Close())
	return bytes.Clone(compressed.Bytes())
}

func put(t testing.TB, s *Store, n, version int) {
	t.Helper()
	if _, ok := s.Put(s.Prepare(keyedCertificate(t, s.format, n, version))); !ok {
		t.Fatal("Put() = false, want true")
	}
}

// extractAll copies all objects out of their blocks.
func extractAll(s *Store) {
	for next := s.ExtractBlocks(0); next != 0; next = s.ExtractBlocks(next) {
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
				expectExactSizes(t, s.Snapshot())
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
							extractAll(s)
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
						s.ExtractBlocks(0)
					}
					expectExactSizes(t, s.Snapshot())
				}
				extractAll(s)
				for key, item := range s.Snapshot().All {
					if item.(*packed.Object).Block() != nil {
						t.Errorf("%s is still in a block", key)
					}
				}
				expectExactSizes(t, s.Snapshot())
				expectObjects(t, s.Snapshot(), model)
			})
		}
	}
}

// TestBlocksAreExtractedBesideReaders reads snapshots while objects are replaced and copied out of blocks.
// Each snapshot must keep its objects.
func TestBlocksAreExtractedBesideReaders(t *testing.T) {
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
						expectObjects(t, m.now, m.model)
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
					s.ExtractBlocks(0)
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
			expectExactSizes(t, s.Snapshot())
			expectObjects(t, s.Snapshot(), model)
		})
	}
}

// expectObjects compares a snapshot with a model: the version of each certificate. It can be called by
// goroutines other than the test's, because it does not call FailNow.
func expectObjects(t testing.TB, now *Snapshot, model map[int]int) {
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
