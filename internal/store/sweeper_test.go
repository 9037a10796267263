package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// runCompressor is a Trainer and a Compressor that encodes long runs of a letter.
type runCompressor struct{}

var run64 = bytes.Repeat([]byte("x"), 64)

func (runCompressor) Train([][]byte) (packed.Compressor, error) { return runCompressor{}, nil }

func (runCompressor) Compress(dst, src []byte) []byte {
	return append(dst, bytes.ReplaceAll(src, run64, []byte{1})...)
}

func (runCompressor) Decompress(dst, src []byte) ([]byte, error) {
	return append(dst, bytes.ReplaceAll(src, []byte{1}, run64)...), nil
}

// object returns a version of object n, of about 4 KB.
func object(t testing.TB, s *store.Store, n, version int) store.KeyedItem {
	t.Helper()
	o, err := s.Format().Packer().Pack(fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a%d","resourceVersion":"%d"},"data":{"text":"%s"}}`,
		n, version, strings.Repeat("x", 4000)))
	if err != nil {
		t.Fatal(err)
	}
	return store.KeyedItem{Key: o.Key(), ResourceVersion: o.Version(), Item: s.Format().Item(o)}
}

const filledObjects = 400 // 1.6 MB

func fill(t testing.TB, s *store.Store) {
	t.Helper()
	all := make([]store.KeyedItem, filledObjects)
	for n := range all {
		all[n] = object(t, s, n, 1)
	}
	if _, ok := s.Replace(s.PrepareAll(all), "1"); !ok {
		t.Fatal("Replace() = false, want true")
	}
}

func adaptive() *store.Store {
	return store.New(store.Options{Format: store.NewAdaptive(nil, runCompressor{})})
}

func isReachable() bool { return false } // not unreachable

func read(t testing.TB, s *store.Store, n int) {
	t.Helper()
	item, found := s.Snapshot().Get(fmt.Sprint("a", n))
	if !found {
		t.Fatalf("object %d was not found", n)
	}
	s.Format().Object(item)
}

// TestListsAreCompressedOnArrival lists many objects and then a few. The first objects train the compressor.
func TestListsAreCompressedOnArrival(t *testing.T) {
	format := store.NewAdaptive(nil, runCompressor{}).CompressLists()
	s := store.New(store.Options{Format: format})
	const large = 700 // 2.8 MB
	list := func(count, version int) (compressed int) {
		all := make([]store.KeyedItem, count)
		for n := range all {
			all[n] = object(t, s, n, version)
			all[n].Item = format.ForList(all[n].Item)
			if all[n].Item.(*packed.Object).Compressed() {
				compressed++
			}
		}
		if _, ok := s.Replace(s.PrepareAll(all), fmt.Sprint(version)); !ok {
			t.Fatal("Replace() = false, want true")
		}
		return compressed
	}
	if n := list(100, 0); n != 0 {
		t.Errorf("%d objects of a short list are compressed without a Compressor, want 0", n)
	}
	if n := list(large, 1); n < large/4 {
		t.Errorf("%d of %d listed objects are compressed, want at least a quarter", n, large)
	}
	if n := list(100, 2); n != 100 {
		t.Errorf("%d objects of a short list are compressed with an existing Compressor, want 100", n)
	}
	for n := range large {
		used := object(t, s, n, 3).Item.(*packed.Object)
		if used.SetInUse(); format.ForList(used) != store.Item(used) {
			t.Fatalf("object %d is compressed, though it is in use", n)
		}
	}
	plain := store.NewAdaptive(nil, runCompressor{})
	for n := range large {
		if o := object(t, s, n, 4).Item; plain.ForList(o) != o {
			t.Fatal("objects are compressed on arrival without CompressLists")
		}
	}
}

// TestBudgetTakesFromColdAndUnreachableFirst fills two stores. The budget requires
// that one of them is compressed.
func TestBudgetTakesFromColdAndUnreachableFirst(t *testing.T) {
	for name, test := range map[string]struct {
		unreachable bool
		read        []bool // whether all objects of the first and second store were read
	}{
		"the first is unreachable":                 {true, []bool{false, false}},
		"the first is unreachable, both were read": {true, []bool{true, true}},
		"the second was read":                      {false, []bool{false, true}},
	} {
		synctest.Test(t, func(t *testing.T) {
			stores := []*store.Store{adaptive(), adaptive()}
			sweeper := store.NewSweeper(1200 << 10)
			for i, s := range stores {
				defer sweeper.Join(s, func() bool { return test.unreachable && i == 0 })()
				for n := range filledObjects / 2 { // 0.8 MB
					if put(t, s, n, 1); test.read[i] {
						read(t, s, n)
					}
				}
			}
			time.Sleep(store.SweepPeriod + 3*store.BudgetCheck) // the first attempt may only train
			if first, second := stores[0].Stats(), stores[1].Stats(); first.Compressed < filledObjects/4 ||
				second.Compressed > 1 {
				t.Errorf("%s: %d and %d objects are compressed, want only some of the first store", name,
					first.Compressed, second.Compressed)
			}
		})
	}
}

// TestDictionariesAreShared has two stores of one type that are too small for compression on their own.
func TestDictionariesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dictionaries store.Dictionaries
		var trainings atomic.Int64
		trainer := &countingTrainer{count: &trainings}
		widgets := schema.GroupResource{Resource: "widgets"}
		gadgets := schema.GroupResource{Resource: "gadgets"}
		newStore := func(gr schema.GroupResource, fields string) *store.Store {
			dictionary := dictionaries.Get(gr, fields, trainer)
			return store.New(store.Options{Format: store.NewAdaptive(nil, dictionary)})
		}
		firstStore, secondStore := newStore(widgets, ""), newStore(widgets, "")
		others := []*store.Store{newStore(gadgets, ""), newStore(widgets, "pruned")}
		sweeper := store.NewSweeper(0)
		for _, s := range append(others, firstStore, secondStore) {
			defer sweeper.Join(s, isReachable)()
			for n := range filledObjects / 2 { // 0.8 MB
				put(t, s, n, 1)
			}
		}
		time.Sleep(10 * store.SweepPeriod)
		a, b := firstStore.Stats(), secondStore.Stats()
		if trainings.Load() != 1 || a.Compressed+b.Compressed < filledObjects/2 {
			t.Errorf("%d trainings, %d and %d compressed objects; want 1 and most objects", trainings.Load(),
				a.Compressed, b.Compressed)
		}
		for _, s := range others {
			if m := s.Stats(); m.Compressed != 0 {
				t.Errorf("%d objects of another type or with other fields are compressed, want 0", m.Compressed)
			}
		}
		if dictionaries.Get(widgets, "", nil) != nil {
			t.Error("Get() without a trainer is not nil")
		}
	})
}

// countingTrainer is a Trainer that counts its calls.
type countingTrainer struct {
	runCompressor
	count *atomic.Int64
}

func (c *countingTrainer) Train(samples [][]byte) (packed.Compressor, error) {
	c.count.Add(1)
	return c.runCompressor.Train(samples)
}

func put(t testing.TB, s *store.Store, n, version int) {
	t.Helper()
	if _, ok := s.Put(s.Prepare(object(t, s, n, version))); !ok {
		t.Fatal("Put() = false, want true")
	}
}

// TestBudgetIsKept continuously writes and reads two stores. One of them cannot be compressed. They stay
// below the budget, although the objects in use alone would exceed it.
func TestBudgetIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, plain := adaptive(), store.New(store.Options{Format: store.NewPacked(nil, nil)})
		for n := range 50 {
			put(t, plain, n, 1)
		}
		used := func() int64 { return bytesOf(s) + bytesOf(plain) }
		const budget = 1 << 20
		sweeper := store.NewSweeper(budget)
		defer sweeper.Join(plain, isReachable)()
		defer sweeper.Join(s, isReachable)()
		fill(t, s)
		time.Sleep(2 * store.BudgetCheck)
		for version := range 60 {
			for n := range 40 {
				put(t, s, (version*17+n)%filledObjects, 2+version)
			}
			for n := range filledObjects {
				read(t, s, n)
			}
			time.Sleep(2 * store.BudgetCheck)
			if n := used(); n > budget {
				t.Fatalf("after version %d the stores use %d bytes, want at most %d", version, n, budget)
			}
		}
		if s.Stats().Compressed == 0 {
			t.Error("no object of the compressible store is compressed")
		}
	})
}

func bytesOf(s *store.Store) int64 {
	m := s.Stats()
	return m.Bytes()
}

// TestUnreachableBudget checks that unsuccessful sweeps are not repeated often.
func TestUnreachableBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int64
		s := store.New(store.Options{Format: store.NewAdaptive(nil, countingCompressor{&tries})})
		defer store.NewSweeper(1).Join(s, isReachable)()
		fill(t, s)
		time.Sleep(10 * time.Minute)
		if m := s.Stats(); m.Compressed != 0 {
			t.Fatalf("Stats() = %+v, want no compressed objects", m)
		}
		if n := tries.Load(); n > 2*filledObjects {
			t.Errorf("%d compressions of %d objects, want at most two per object", n, filledObjects)
		}
	})
}

// countingCompressor is a Compressor without effect.
type countingCompressor struct{ attempts *atomic.Int64 }

func (c countingCompressor) Train([][]byte) (packed.Compressor, error) { return c, nil }

func (c countingCompressor) Compress(dst, src []byte) []byte {
	c.attempts.Add(1)
	return append(dst, src...)
}

func (countingCompressor) Decompress(dst, src []byte) ([]byte, error) {
	return append(dst, src...), nil
}

// TestSweeperGoroutineEnds lets stores join and leave a sweeper. synctest fails if a goroutine remains.
func TestSweeperGoroutineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sweeper := store.NewSweeper(0)
		if err := sweeper.Compress(t.Context(), adaptive()); err != nil {
			t.Error(err)
		}
		sweeper.Join(store.New(store.Options{}), isReachable)() // not adaptive
		a, b := adaptive(), adaptive()
		leaveA, leaveB := sweeper.Join(a, isReachable), sweeper.Join(b, isReachable)
		fill(t, a)
		leaveA()
		fill(t, a) // no longer a member
		leaveB()
		leave := sweeper.Join(b, isReachable)
		fill(t, b)
		if err := sweeper.Compress(t.Context(), b); err != nil || b.Stats().Compressed != filledObjects ||
			a.Stats().Compressed != 0 {
			t.Errorf("Compress() = %v with Stats() %+v and %+v, want only the second store compressed", err,
				a.Stats(), b.Stats())
		}
		leave()
	})
}

func TestCompressEndsWithItsContext(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	sweeper := store.NewSweeper(0)
	s := adaptive()
	defer sweeper.Join(s, isReachable)()
	if err := sweeper.Compress(ctx, s); err != nil && !errors.Is(err, why) {
		t.Error(err)
	}
}
