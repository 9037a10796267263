package store

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
)

// adaptiveStore returns a store that is compressed by sweeps only.
func adaptiveStore(t testing.TB, objects int) *Store {
	t.Helper()
	s := New(Options{Format: NewAdaptive(nil, prefixCompressor{}),
		Indexers:   withIndexes(cache.Indexers{"app": byApp}),
		Extractors: []Extractor{&fixedExtractor{[]string{"fixed"}}}})
	replaceAll(t, s, objects, 1)
	return s
}

// prefixCompressor is a Trainer and a Compressor that removes a constant part of each certificate. It is
// fast, also with the race detector.
type prefixCompressor struct{}

const constantText = `{"f:metadata":{"f:annotations":{".":{},"f:cert-manager.io/issue-temporary-certificate":{},"f:team":{}},"f:labels":{".":{},"f:app.kubernetes.io/managed-by":{},"f:app.kubernetes.io/name":{},"f:env":{}}},"f:spec":{".":{},"f:dnsNames":{},"f:issuerRef":{},"f:secretName":{}}}`

func (prefixCompressor) Train([][]byte) (packed.Compressor, error) { return prefixCompressor{}, nil }

func (prefixCompressor) Compress(dst, src []byte) []byte {
	return append(dst, bytes.ReplaceAll(src, []byte(constantText), []byte{1})...)
}

func (prefixCompressor) Decompress(dst, src []byte) ([]byte, error) {
	return append(dst, bytes.ReplaceAll(src, []byte{1}, []byte(constantText))...), nil
}

// sweepAll sweeps a store once.
func sweepAll(s *Store, mode Sweep) (saved int64) {
	for next, first := uint64(0), true; first || next != 0; first = false {
		swept := s.Sweep(next, mode)
		next, saved = swept.Next, saved+swept.Saved
	}
	return saved
}

// exactSizes computes the expected sizes of a snapshot from its rows.
func exactSizes(s *Snapshot) objectSizes {
	all := objectSizes{}
	for r := range s.rows.all {
		all.addRow(r, 1)
	}
	all.replaced = s.sizes.replaced
	return all
}

func expectExactSizes(t *testing.T, s *Snapshot) {
	t.Helper()
	if want := exactSizes(s); s.sizes != want {
		t.Errorf("the sizes of the snapshot are %+v, want %+v", s.sizes, want)
	}
}

// TestSweepCompressesUnreadObjects reads objects in different ways over many periods, and verifies which of
// them are compressed.
func TestSweepCompressesUnreadObjects(t *testing.T) {
	const objects = 1000
	s := adaptiveStore(t, objects)
	format := s.Adaptive()
	read := func(n int) {
		item, found := s.Snapshot().Get(fmt.Sprintf("tenant-%d/certificate-%d", n%100, n))
		if !found {
			t.Fatalf("object %d was not found", n)
		}
		format.Object(item)
	}
	compressed := func(n int) bool {
		item, _ := s.Snapshot().Get(fmt.Sprintf("tenant-%d/certificate-%d", n%100, n))
		return item.(*packed.Object).Compressed()
	}
	sweepAll(s, SweepAfterFill) // some train the compressor
	sweepAll(s, SweepAfterFill)
	if m := s.Stats(); m.Compressed != objects || m.PackedBytes != 0 {
		t.Fatalf("after the fill, Stats() = %+v, want all objects compressed", m)
	}
	expectExactSizes(t, s.Snapshot())

	for period := range 5 {
		read(1) // in all periods
		if period == 0 {
			read(2) // in one period
		}
		if period < 2 {
			read(3) // in some periods
		}
		sweepAll(s, SweepPeriodic)
	}
	for n, want := range map[int]bool{1: false, 2: true, 3: false, 4: true} {
		if compressed(n) != want {
			t.Errorf("in period 5: object %d is compressed: %v, want %v", n, !want, want)
		}
	}
	for range packed.MaxAge {
		read(1)
		sweepAll(s, SweepPeriodic)
	}
	for n, want := range map[int]bool{1: false, 2: true, 3: true, 4: true} {
		if compressed(n) != want {
			t.Errorf("later: object %d is compressed: %v, want %v", n, !want, want)
		}
	}
	sweepAll(s, SweepUnread)
	if compressed(1) != true { // because the last sweep has started another period
		t.Error("an object that was not read in this period is not compressed")
	}
	read(1)
	sweepAll(s, SweepPeriodic)
	read(1)
	sweepAll(s, SweepFrugal)
	if !compressed(1) {
		t.Error("a frugal sweep decompressed an object")
	}
	read(1)
	sweepAll(s, SweepPeriodic)
	read(1)
	if sweepAll(s, SweepUnread); compressed(1) {
		t.Error("SweepUnread compressed an object that was read")
	}
	if sweepAll(s, SweepAll); !compressed(1) {
		t.Error("SweepAll did not compress the object")
	}
	expectExactSizes(t, s.Snapshot())
}

// TestHandlersAndIndexesDoNotCountAsReads verifies that passing objects to handlers and index functions does
// not mark them as read.
func TestHandlersAndIndexesDoNotCountAsReads(t *testing.T) {
	s := adaptiveStore(t, 300)
	format := s.Adaptive()
	items := s.Snapshot().Items()
	for k, item := range items {
		format.PeekObject(item)
		format.Pair(items[0], item)
		format.Pair(item, items[(k+1)%len(items)])
	}
	must(t, s.AddIndexers(cache.Indexers{"uid": byUID}))
	for _, item := range s.Snapshot().Items() {
		if use := item.(*packed.Object).Usage(); use.Read {
			t.Fatalf("an object counts as read: %+v", use)
		}
	}
}

// TestSweptRowsDoNotRetainJSON checks that strings in rows and indexes do not share the memory of compressed
// objects' JSON.
func TestSweptRowsDoNotRetainJSON(t *testing.T) {
	s := adaptiveStore(t, 300)
	before := map[*storedRow]string{}
	for r := range s.Snapshot().rows.all {
		text, _ := r.object.Load().JSON()
		before[r] = text
	}
	sweepAll(s, SweepAfterFill)
	sweepAll(s, SweepAfterFill)
	isWithin := func(part, whole string) bool {
		at, from := uintptr(unsafe.Pointer(unsafe.StringData(part))),
			uintptr(unsafe.Pointer(unsafe.StringData(whole)))
		return part != "" && at >= from && at < from+uintptr(len(whole))+200
	}
	now := s.Snapshot()
	for r := range now.rows.all {
		if !r.object.Load().Compressed() {
			t.Fatalf("%s is not compressed", r.key)
		}
		if isWithin(r.key, before[r]) {
			t.Fatalf("the key %s is a part of the JSON", r.key)
		}
		for i := range now.indexes {
			for p := range now.indexes[i].postings.all {
				if p.singleRow == r && isWithin(p.value, before[r]) {
					t.Fatalf("the value %s is a part of the JSON", p.value)
				}
			}
		}
	}
}

// TestRelistsKeepCompressedRows relists packed, compressed and changed objects, and verifies that the rows of
// unchanged objects remain.
func TestRelistsKeepCompressedRows(t *testing.T) {
	s := adaptiveStore(t, 300)
	sweepAll(s, SweepAfterFill)
	before := s.Snapshot()
	batch := make([]KeyedItem, 300)
	for n := range batch {
		o, err := s.format.Packer().Pack(certificate(n, 1+n/299)) // only the last one is changed
		must(t, err)
		batch[n] = KeyedItem{Key: o.Key(), ResourceVersion: o.Version(), Item: o}
	}
	prepared := s.PrepareAll(batch)
	sweepAll(s, SweepAll) // in the meantime
	changes, ok := s.Replace(prepared, "2")
	if !ok {
		t.Fatal("Replace() = false, want true")
	}
	expectExactSizes(t, s.Snapshot())
	changed := 0
	for n := range changes.Len() {
		c := changes.At(n)
		if before.rows.find(c.Key) != s.Snapshot().rows.find(c.Key) {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("%d rows were replaced, want 1", changed)
	}
}

// TestSweepsInHistories combines random writes with sweeps of all kinds and readers, and compares the store
// and its sizes with a model.
func TestSweepsInHistories(t *testing.T) {
	const keys, steps = 250, 400
	s := adaptiveStore(t, keys)
	sweeps := []Sweep{SweepPeriodic, SweepFrugal, SweepAfterFill, SweepUnread, SweepAll,
		{AdvanceAges: true, Decompresses: true, Compresses: func(packed.Usage) bool { return false }}}
	stop, turn := make(chan struct{}), make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() { // the sweeper; ended by stop
		random := rand.New(rand.NewPCG(3, 4))
		for at := uint64(0); ; {
			select {
			case <-stop:
				return
			case <-turn:
				at = s.Sweep(at, sweeps[random.IntN(len(sweeps))]).Next
			}
		}
	})
	for worker := range 2 {
		others.Go(func() { // a reader; ended by stop
			random := rand.New(rand.NewPCG(5, uint64(worker)))
			for {
				select {
				case <-stop:
					return
				default:
				}
				n := random.IntN(keys)
				item, found := s.Snapshot().Get(fmt.Sprintf("tenant-%d/certificate-%d", n%100, n))
				if !found {
					continue
				}
				u := decodeRandomly(random, s.format, item)
				if name := u["metadata"].(map[string]any)["name"]; name != fmt.Sprintf("certificate-%d", n) {
					t.Errorf("object %d has the name %v", n, name)
					return
				}
			}
		})
	}
	model := map[int]int{}
	for n := range keys {
		model[n] = 1
	}
	random := rand.New(rand.NewPCG(1, 2))
	for step := range steps {
		if step%4 == 0 {
			turn <- struct{}{} // sweeping continues during the steps that follow
		}
		n := random.IntN(keys)
		switch random.IntN(10) {
		case 0, 1, 2, 3, 4, 5:
			if _, ok := s.Put(s.Prepare(keyedCertificate(t, s.format, n, step))); !ok {
				t.Fatal("Put() = false, want true")
			}
			model[n] = step
		case 6, 7:
			s.Remove(fmt.Sprintf("tenant-%d/certificate-%d", n%100, n), "")
			delete(model, n)
		case 8:
			s.Adaptive().SetCompressOnArrival(random.IntN(2) == 0)
		case 9:
			if step%10 == 0 {
				relist(t, s, model)
			}
		}
		if step%100 == 0 {
			expectModel(t, s, model)
		}
	}
	close(stop)
	others.Wait()
	expectModel(t, s, model)
	expectExactSizes(t, s.Snapshot())
}

// decodeRandomly reads an object in one of several ways.
func decodeRandomly(random *rand.Rand, format Format, item Item) map[string]any {
	o := item.(*packed.Object)
	switch random.IntN(3) {
	case 0:
		return o.Unstructured().Object
	case 1:
		if u, err := o.Decode(); err == nil {
			return u.Object
		}
	}
	return format.Object(item).(*unstructured.Unstructured).Object
}

func relist(t *testing.T, s *Store, model map[int]int) {
	t.Helper()
	var batch []KeyedItem
	for _, n := range slices.Sorted(maps.Keys(model)) {
		batch = append(batch, keyedCertificate(t, s.format, n, model[n]))
	}
	if _, ok := s.Replace(s.PrepareAll(batch), "1"); !ok {
		t.Fatal("Replace() = false, want true")
	}
}

func expectModel(t *testing.T, s *Store, model map[int]int) {
	t.Helper()
	now := s.Snapshot()
	got := map[string]string{}
	for key, item := range now.All {
		u, err := item.(*packed.Object).Decode()
		must(t, err)
		got[key] = u.GetResourceVersion()
	}
	want, byNamespace := map[string]string{}, map[string]int{}
	for n, version := range model {
		want[fmt.Sprintf("tenant-%d/certificate-%d", n%100, n)] = fmt.Sprint(1_000_000 + version)
		byNamespace[fmt.Sprintf("tenant-%d", n%100)]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	x, _ := now.Index(cache.NamespaceIndex)
	counted := map[string]int{}
	x.Each(func(value string, count int) bool {
		counted[value] = count
		return true
	})
	if diff := cmp.Diff(byNamespace, counted); diff != "" {
		t.Fatalf("by namespace, -want +got:\n%s", diff)
	}
}
