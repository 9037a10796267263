package newer

import (
	"time"

	"k8s.io/client-go/tools/cache"
)

// Checker has the methods of cache.DoneChecker, which client-go has since 0.36.
type Checker interface {
	Name() string
	Done() <-chan struct{}
}

// SyncedChecker is embedded in a type to give it the method HasSyncedChecker, if client-go's interfaces have
// it.
type SyncedChecker = cache.ResourceEventHandlerRegistration

// registration is a SyncedChecker that has the method in any case.
type registration struct {
	SyncedChecker
	withoutChecker
}

type withoutChecker struct{ noChecker }

type noChecker struct{}

func (noChecker) HasSyncedChecker() Checker { return nil }

// NewSyncedChecker returns a SyncedChecker that wraps the checker.
func NewSyncedChecker(checker Checker) SyncedChecker {
	return newSynced(registration.HasSyncedChecker, checker)
}

func newSynced[T any](_ func(registration) T, checker Checker) SyncedChecker {
	var s any = syncedAdapter[T]{checker}
	return s.(SyncedChecker)
}

// syncedAdapter implements SyncedChecker if T is the result of its HasSyncedChecker.
type syncedAdapter[T any] struct{ checker Checker }

func (s syncedAdapter[T]) HasSynced() bool {
	select {
	case <-s.checker.Done():
		return true
	default:
		return false
	}
}

func (s syncedAdapter[T]) HasSyncedChecker() T { return any(s.checker).(T) }

// pollPeriod is client-go's period of polling HasSynced.
const pollPeriod = 100 * time.Millisecond

// Done returns a channel that is closed when source has synced. Informers and handlers of client-go 0.35 have
// no channel: their HasSynced is polled until it returns true, or until end is closed.
func Done(source interface{ HasSynced() bool }, end <-chan struct{}) <-chan struct{} {
	return done(registration.HasSyncedChecker, source, end)
}

func done[T any](_ func(registration) T, source interface{ HasSynced() bool },
	end <-chan struct{}) <-chan struct{} {
	if syncedSource, ok := source.(interface{ Synced() <-chan struct{} }); ok {
		return syncedSource.Synced()
	}
	if s, ok := source.(interface{ HasSyncedChecker() T }); ok {
		return any(s.HasSyncedChecker()).(Checker).Done()
	}
	synced := make(chan struct{})
	go pollUntilSynced(source, synced, end)
	return synced
}

// pollUntilSynced closes synced when source has synced. It returns then, or when end is closed.
func pollUntilSynced(source interface{ HasSynced() bool }, synced chan<- struct{}, end <-chan struct{}) {
	ticker := time.NewTicker(pollPeriod)
	defer ticker.Stop()
	for !source.HasSynced() {
		select {
		case <-ticker.C:
		case <-end:
			return
		}
	}
	close(synced)
}
