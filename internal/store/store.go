package store

import (
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
)

// Item is what a Store keeps of one object: something that meta.Accessor works on without decoding a body.
type Item = any

// Options configure a Store. The zero value works: objects are kept as they are, without indexes.
type Options struct {
	// Indexers are the index functions to start with.
	Indexers cache.Indexers
	// Extractors have more indexes to start with. No two indexes may have the same name.
	Extractors []Extractor
	// Form is how objects are kept. Default: as they are.
	Form Form
	// Report is told of index functions that fail, with no lock held. Default: nobody is.
	Report func(Failures)
}

// Store keeps the objects of one type with their indexes. It is safe for concurrent use. Readers take no lock
// and never wait; writers take turns.
type Store struct {
	form   Form
	report func(Failures)

	// write is held while the content is changed, the values of its rows included: not while index functions
	// run or objects are packed.
	write sync.Mutex
	// ids counts the index functions there ever were, under write.
	ids int
	// changes counts the calls that put objects in another form in the place of what they show, under write.
	changes int
	// blocks are those of the content, under write.
	blocks blocks
	// current is changed under write.
	current atomic.Pointer[Snapshot]
	// filled is called when the whole content has been replaced, under write.
	filled atomic.Pointer[func()]
	// decoded is what Measure knows of objects that are not packed.
	decoded decodedSize
}

// New returns an empty Store.
func New(options Options) *Store {
	s := &Store{form: options.Form, report: options.Report}
	if s.form == nil {
		s.form = Objects(nil)
	}
	if packs, ok := s.form.(*Packed); ok {
		packs.packer.Reuse(s.held)
	}
	first := &Snapshot{functions: named(options.Indexers)(0)}
	for _, e := range options.Extractors {
		first.functions = append(first.functions, extracting(e)(len(first.functions))...)
	}
	s.ids = len(first.functions)
	for _, f := range first.functions {
		first.indexes = append(first.indexes, index{function: f})
	}
	s.current.Store(first)
	return s
}

// Snapshot returns the present content.
func (s *Store) Snapshot() *Snapshot { return s.current.Load() }

// held returns the packed object of a key, which it does not keep; nil: there is none.
func (s *Store) held(key string) *packed.Object {
	now := s.current.Load()
	if r := findRow(&now.rows, key); r != nil {
		return r.object.Load()
	}
	return nil
}

// OnFill has a func called whenever the whole content has been replaced. It must not wait for anything, nor
// call the store.
func (s *Store) OnFill(filled func()) { s.filled.Store(&filled) }

// Form tells how objects are kept.
func (s *Store) Form() Form { return s.form }
