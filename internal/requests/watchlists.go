package requests

import (
	"net/http"
	"runtime"
	"sync"
	"time"
	"weak"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// watchRecord has the experience with watches on a connection. A proxy that buffers responses, or drops the
// bookmark that ends the initial events, stalls the watch-lists of all types. It is safe for concurrent use.
// The zero value is ready to use.
type watchRecord struct {
	mu sync.Mutex
	// stalledAt is the time of the latest stall; zero if a watch-list was completed after it.
	stalledAt time.Time
	// probeAt is the earliest time of the next watch-list of a type that was listed before.
	probeAt time.Time
	// holdsBack is set after a watch got no response headers, until one receives an event in time.
	holdsBack bool
	// open are the watch-lists that are not complete.
	open map[*attempt]bool
}

// watchRecords are the records of the connections in use.
var watchRecords = struct {
	sync.Mutex
	byConnection map[connectionKey]*watchRecord
}{byConnection: map[connectionKey]*watchRecord{}}

type connectionKey struct {
	transport weak.Pointer[http.Transport]
	host      string
}

// watchRecordOf returns the record of a connection. Clients of equal configs have the same transport.
func watchRecordOf(transport http.RoundTripper, host string) *watchRecord {
	for {
		switch t := transport.(type) {
		case *Connection:
			return &t.watches
		case *http.Transport:
			watchRecords.Lock()
			defer watchRecords.Unlock()
			key := connectionKey{weak.Make(t), host}
			record := watchRecords.byConnection[key]
			if record == nil {
				record = &watchRecord{}
				watchRecords.byConnection[key] = record
				runtime.AddCleanup(t, func(key connectionKey) {
					watchRecords.Lock()
					defer watchRecords.Unlock()
					delete(watchRecords.byConnection, key)
				}, key)
			}
			return record
		case utilnet.RoundTripperWrapper:
			transport = t.WrappedRoundTripper()
		default:
			return &watchRecord{}
		}
	}
}

const (
	// watchListProbePeriod is the time between two watch-lists while they stall.
	watchListProbePeriod = 10 * time.Minute
	// watchListRetryPeriod is how long a type is listed after its watch-list has stalled.
	watchListRetryPeriod = time.Hour
)

// mustList reports whether to list, because watch-lists stall. listedBefore: one would only delay a relist.
func (r *watchRecord) mustList(listedBefore bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stalledAt.IsZero() {
		return false
	}
	if now := time.Now(); listedBefore && !now.Before(r.probeAt) {
		r.probeAt = now.Add(watchListProbePeriod)
		return false
	}
	return true
}

// hasStalledSince reports whether a watch-list has stalled after a time.
func (r *watchRecord) hasStalledSince(since time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stalledAt.After(since)
}

// isSuspect reports whether a proxy may hold back watches.
func (r *watchRecord) isSuspect() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holdsBack || !r.stalledAt.IsZero()
}

// recordHeldBack records whether the latest watch was held back.
func (r *watchRecord) recordHeldBack(heldBack bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holdsBack = heldBack
}

// opened adds a watch-list that waits for its initial events.
func (r *watchRecord) opened(a *attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[*attempt]bool{}
	}
	r.open[a] = true
}

// ended removes a watch-list. completed states that its initial events are complete.
func (r *watchRecord) ended(a *attempt, completed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, a)
	if completed {
		r.stalledAt = time.Time{}
	}
}

// stalled records that a watch-list has stalled, and aborts others that are silent or become silent soon.
func (r *watchRecord) stalled() {
	r.mu.Lock()
	now := time.Now()
	r.stalledAt, r.probeAt = now, now.Add(watchListProbePeriod)
	r.mu.Unlock()
	r.abortSilent()
	time.AfterFunc(answerTimeout, r.abortSilent) // those that were just opened
}

// abortSilent aborts the watch-lists that have been silent for answerTimeout.
func (r *watchRecord) abortSilent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for a := range r.open {
		if !r.stalledAt.IsZero() && time.Since(time.Unix(0, a.lastData.Load())) >= answerTimeout {
			a.cancel(errNoAnswer)
		}
	}
}
