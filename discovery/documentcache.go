package discovery

import (
	"context"
	"sync"
	"time"
	"weak"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// fetchedDocument is a document with the time of its request. It is immutable.
type fetchedDocument struct {
	*cachedDocument
	// started is the start of the request that confirmed the document, as of the server's state then.
	started time.Time
}

// documentCache fetches and caches one discovery document. Concurrent callers share one fetch, and fetches
// start at least interval apart, so that a burst of misses or CRD events costs at most one round a second.
type documentCache struct {
	interval time.Duration
	fetch    func(ctx context.Context, earlier *cachedDocument) (*cachedDocument, error)

	mu struct {
		sync.Mutex
		latest     *fetchedDocument
		started    time.Time // when the latest fetch began, successful or not
		inProgress *fetchInProgress
	}
}

// fetchInProgress is a fetch in progress. It is cancelled when the last waiting caller gives up.
type fetchInProgress struct {
	done    chan struct{} // closed after err is set
	err     error
	started time.Time
	cancel  context.CancelFunc
	waiters int // guarded by documentCache.mu
}

// latest returns the latest document, or nil, without contacting the server.
func (s *documentCache) latest() *fetchedDocument {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.latest
}

// fetchedSince returns a document fetched at or after since. It waits for a fetch in progress, or starts a
// fetch when the interval allows it.
func (s *documentCache) fetchedSince(ctx context.Context, since time.Time) (*fetchedDocument, error) {
	for {
		s.mu.Lock()
		if latest := s.mu.latest; latest != nil && !latest.started.Before(since) {
			s.mu.Unlock()
			return latest, nil
		}
		if wait := s.interval - time.Since(s.mu.started); s.mu.inProgress == nil &&
			!s.mu.started.IsZero() && wait > 0 {
			s.mu.Unlock()
			if err := sleep(ctx, wait); err != nil {
				return nil, err
			}
			continue
		}
		f := s.joinLocked()
		s.mu.Unlock()
		if err := s.awaitFetch(ctx, f); err != nil {
			return nil, err
		}
		if f.err != nil && !f.started.Before(since) {
			return nil, f.err
		}
	}
}

// joinLocked returns the fetch in progress, or starts one.
func (s *documentCache) joinLocked() *fetchInProgress {
	if f := s.mu.inProgress; f != nil {
		f.waiters++
		return f
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &fetchInProgress{done: make(chan struct{}), started: time.Now(), cancel: cancel, waiters: 1}
	s.mu.inProgress, s.mu.started = f, f.started
	// The goroutine ends with its requests, which have a timeout, or when the last waiter gives up.
	go s.run(ctx, f, s.mu.latest)
	return f
}

func (s *documentCache) run(ctx context.Context, f *fetchInProgress, earlier *fetchedDocument) {
	defer f.cancel()
	var previous *cachedDocument
	if earlier != nil {
		previous = earlier.cachedDocument
	}
	c, err := s.fetch(ctx, previous)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.mu.latest = &fetchedDocument{cachedDocument: c, started: f.started}
	}
	if s.mu.inProgress == f {
		s.mu.inProgress = nil
	}
	f.err = err
	close(f.done)
}

// awaitFetch waits for f or ctx, and cancels f if there is no other waiter.
func (s *documentCache) awaitFetch(ctx context.Context, f *fetchInProgress) error {
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.waiters--; f.waiters == 0 {
		f.cancel()
		// New callers must not join a cancelled fetch.
		if s.mu.inProgress == f {
			s.mu.inProgress = nil
		}
	}
	return ctx.Err()
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The clients of many equal clusters share documents, by the hashes of their texts, and catalogs.
var (
	sharedDocuments jsontext.Shared[[32]byte, documentGroups]
	sharedContents  jsontext.Shared[contentKey, catalogContent]
)

// contentKey has the documents of a catalog.
type contentKey struct{ core, groups weak.Pointer[documentGroups] }
