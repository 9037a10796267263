package health

import (
	"context"
	"errors"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/requests"
)

// counts counts the requests of an informer since its creation, without a map for the few verbs of a type.
type counts struct {
	requests         []verbCount
	failures         map[status.RequestFailureKind]int64 // nil without failures
	lists            int64
	listTime         time.Duration
	acceptedRequests int64
	verifications    status.Verifications
}

type verbCount struct {
	verb string
	sent int64
}

func (c *counts) countRequest(verb requests.Verb) {
	name := verb.String()
	for i := range c.requests {
		if c.requests[i].verb == name {
			c.requests[i].sent++
			return
		}
	}
	c.requests = append(c.requests, verbCount{name, 1})
}

func (c *counts) countFailure(verb requests.Verb, reason status.Reason) {
	if c.failures == nil {
		c.failures = map[status.RequestFailureKind]int64{}
	}
	c.failures[status.RequestFailureKind{Verb: verb.String(), Reason: reason}]++
}

// Verified counts a comparison with the server. relists reports whether a relist follows.
func (h *Health) RecordVerification(diverged, relists bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := &h.mu.counts.verifications
	switch {
	case diverged:
		v.Diverged++
	case err != nil:
		v.Failed++
	default:
		v.Equal++
	}
	for _, p := range h.mu.observations.partitions.all {
		if relists && p.hasListed {
			p.relistReason = status.RelistDiverged
		}
	}
}

// ReadLive counts a read of one object from the server. A missing object is no failure.
func (h *Health) ReadLive(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.counts.countRequest(requests.VerbGet)
	if err != nil && !apierrors.IsNotFound(err) && !errors.Is(err, context.Canceled) {
		h.mu.counts.countFailure(requests.VerbGet, requests.ReasonOf(err))
	}
}

// AcceptedRequests returns the number of requests that the server has accepted. A request is counted before
// its events are delivered.
func (h *Health) AcceptedRequests() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.counts.acceptedRequests
}

// Counters returns the counters of requests. Its other counters are zero.
func (h *Health) Counters() status.Counters {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &h.mu.counts
	counters := status.Counters{Requests: make(map[string]int64, len(c.requests)),
		Failures: maps.Clone(c.failures), Lists: c.lists, ListTime: c.listTime, Relists: h.mu.status.Relists,
		Verifications: c.verifications}
	for _, r := range c.requests {
		counters.Requests[r.verb] = r.sent
	}
	return counters
}
