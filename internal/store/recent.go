package store

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/crdcache/crdcache/internal/packed"
)

const (
	recentSets = 512
	recentWays = 2
	// maxRecentLength is the length in bytes above which a packed object does not become a recent read.
	maxRecentLength = 4 << 10
	// readsPerEviction is the number of reads for one replacement of a recent read. It bounds the cost of
	// programs that read more objects than fit.
	readsPerEviction = 16
)

// recentReads has the objects of a Store that were read repeatedly. Reading them again needs neither the
// content nor a weak pointer. A garbage collection empties it: a copy lives at most a cycle longer.
//
// A writer holds mu from before it removes a recent read until after it has published the new content. A
// reader adds an object only if the content did not change since before the reader loaded it. A recent read
// is therefore never outdated.
type recentReads struct {
	sets [recentSets][recentWays]recentRead
	// mu guards changes of sets.
	mu sync.Mutex
	// changes counts the changes of the content.
	changes atomic.Uint64
	// expires means that a cleanup will empty the sets after the next garbage collection. Guarded by mu.
	expires bool
}

// recentRead is a slot for an object. hash is that of its key, unless the object is being replaced.
type recentRead struct {
	hash   atomic.Uint64
	object atomic.Pointer[readObject]
	// hits counts the reads that found a decoded copy here.
	hits atomic.Int64
}

// readObject is an object as readers receive it. stored is nil if the object is not packed.
type readObject struct {
	key    string
	stored *packed.Object
	object any
}

// Object returns the object with a key for readers, which is shared and read-only.
func (s *Store) Object(key string) (object any, exists bool) {
	hash := hashOf(key)
	recent := s.recent.Load()
	if recent == nil {
		return s.objectWithHash(hash, key)
	}
	if read := recent.find(hash, key); read != nil {
		return read.object, true
	}
	changes := recent.changes.Load() // before the content
	r := s.current.Load().rows.findHashed(hash, key)
	if r == nil {
		return nil, false
	}
	stored := r.packed()
	isRepeatedRead := stored == nil || stored.Len() <= maxRecentLength && stored.Decoded() != nil
	object = s.format.Object(r.item())
	if isRepeatedRead {
		recent.add(hash, changes, keyOf(r), stored, object)
	}
	return object, true
}

// objectWithHash is Object without recent reads. For a decoded object it creates the recent reads.
func (s *Store) objectWithHash(hash uint64, key string) (object any, exists bool) {
	r := s.current.Load().rows.findHashed(hash, key)
	if r == nil {
		return nil, false
	}
	stored := r.packed()
	if (stored == nil || stored.Decoded() != nil) && s.write.TryLock() { // no writer may miss them
		s.recent.CompareAndSwap(nil, &recentReads{})
		s.write.Unlock()
	}
	return s.format.Object(r.item()), true
}

// find returns the recent read with a key, or nil.
func (t *recentReads) find(hash uint64, key string) *readObject {
	set := &t.sets[hash%recentSets]
	for way := range set {
		if set[way].hash.Load() != hash {
			continue
		}
		if read := set[way].object.Load(); read != nil && read.key == key {
			if read.stored != nil {
				read.stored.MarkRead()
				set[way].hits.Add(1)
			}
			return read
		}
	}
	return nil
}

// add adds an object, unless the content has changed or a writer is at work.
func (t *recentReads) add(hash, changes uint64, key string, stored *packed.Object, object any) {
	set := &t.sets[hash%recentSets]
	way := 0
	for way < recentWays && set[way].object.Load() != nil {
		way++
	}
	if way == recentWays {
		random := rand.Uint32()
		if random%readsPerEviction > 0 {
			return
		}
		way = int(random/readsPerEviction) % recentWays
	}
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	if t.changes.Load() != changes {
		return
	}
	set[way].hash.Store(hash)
	set[way].object.Store(&readObject{key, stored, object})
	if !t.expires {
		t.expires = true
		runtime.AddCleanup(new(collectionProbe), expireRecent, weak.Make(t))
	}
}

// collectionProbe is never used, so that its cleanup runs after the next garbage collection. The pointer
// prevents an allocation together with other small objects.
type collectionProbe struct{ _ *byte }

func expireRecent(reads weak.Pointer[recentReads]) {
	if t := reads.Value(); t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.expires = false
		t.clear()
	}
}

// Decodes returns how many reads found a decoded copy in memory (hits), and how many had to decode (misses).
func (s *Store) Decodes() (hits, misses int64) {
	f, ok := s.format.(*Packed)
	if !ok {
		return 0, 0
	}
	hits, misses = f.Decodes()
	if recent := s.recent.Load(); recent != nil {
		hits += recent.countHits()
	}
	return hits, misses
}

// countHits returns the number of reads that found a decoded copy.
func (t *recentReads) countHits() (hits int64) {
	for i := range t.sets {
		for way := range t.sets[i] {
			hits += t.sets[i][way].hits.Load()
		}
	}
	return hits
}

// clear removes all objects. The caller holds mu.
func (t *recentReads) clear() {
	for i := range t.sets {
		for way := range t.sets[i] {
			t.sets[i][way].object.Store(nil)
		}
	}
}

// remove removes the object with a key, if any. The caller holds mu.
func (t *recentReads) remove(key string) {
	hash := hashOf(key)
	set := &t.sets[hash%recentSets]
	for way := range set {
		if read := set[way].object.Load(); read != nil && read.key == key {
			set[way].object.Store(nil)
		}
	}
}

// publish makes next the content. It differs from the present content in one key, or in any keys if the key
// is empty. The caller holds s.write.
func (s *Store) publish(next *Snapshot, key string) {
	recent := s.recent.Load()
	if recent == nil {
		s.current.Store(next)
		return
	}
	recent.mu.Lock()
	defer recent.mu.Unlock()
	if key == "" {
		recent.clear()
	} else {
		recent.remove(key)
	}
	s.current.Store(next)
	recent.changes.Add(1) // last: a reader that sees the new number loads the new content
}
