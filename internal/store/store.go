package store

import (
	"cmp"
	"errors"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
)

// Options configure a Store. The zero value stores objects unchanged, without indexes.
type Options struct {
	// Indexers are the initial index functions.
	Indexers cache.Indexers
	// Extractors are further initial indexes. Index names must be unique.
	Extractors []Extractor
	// Format defines how objects are stored. Default: decoded.
	Format Format
	// Report is called for index functions that fail, without holding locks. Optional.
	Report func(Failures)
}

// Store stores the objects of one type with their indexes. It is safe for concurrent use. Readers take no
// lock and never wait; writers are serialized.
type Store struct {
	format         Format
	identitiesOnly bool // of format
	report         func(Failures)

	// write guards changes of the content, including the index values of its rows. It is not held while index
	// functions run or objects are packed.
	write sync.Mutex
	// functionsAdded is the number of index functions ever added, the next one's id. Guarded by write.
	functionsAdded int
	// conversions counts the calls that compressed or decompressed objects. Guarded by write.
	conversions int
	// current is changed while holding write.
	current atomic.Pointer[Snapshot]
	// recent is nil until a read is repeated.
	recent atomic.Pointer[recentReads]
	// onFill is called after the content has been replaced, while holding write.
	onFill atomic.Pointer[func()]
	// decoded caches the average size of decoded objects for Stats.
	decoded decodedSize
}

func New(options Options) *Store {
	s := &Store{format: cmp.Or(options.Format, Objects(nil)), report: options.Report}
	if packs, ok := s.format.(*Packed); ok {
		packs.packer.SetLookup(s.lookup)
		s.identitiesOnly = packs.identitiesOnly
	}
	first := &Snapshot{functions: indexFunctions(options.Indexers)(0)}
	for _, e := range options.Extractors {
		first.functions = append(first.functions, extractorFunctions(e)(len(first.functions))...)
	}
	s.functionsAdded = len(first.functions)
	for _, f := range first.functions {
		first.indexes = append(first.indexes, index{function: f})
	}
	s.current.Store(first)
	return s
}

// Snapshot returns the current content.
func (s *Store) Snapshot() *Snapshot { return s.current.Load() }

// lookup returns the packed object with a key, or nil. It does not retain the key.
func (s *Store) lookup(key string) *packed.Object {
	current := s.current.Load()
	if r := current.rows.find(key); r != nil {
		return r.packed()
	}
	return nil
}

// OnFill sets a func that is called when the whole content was replaced. It must not block or call the store.
func (s *Store) OnFill(onFill func()) { s.onFill.Store(&onFill) }

// ErrNotStored is returned by calls that need the objects of a store that stores none.
var ErrNotStored = errors.New("StorageNone stores no objects: use another storage mode, or read from the API server")

// StoresObjects reports whether the store has the objects. Otherwise it has only their keys, UIDs and
// resource versions (see NewIdentities), and no indexes.
func (s *Store) StoresObjects() bool { return !s.identitiesOnly }

// Format returns the storage format of the objects.
func (s *Store) Format() Format { return s.format }
