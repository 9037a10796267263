package health

import (
	"maps"
	"time"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/requests"
)

// Counts are the counters of an informer's requests since its creation.
type Counts struct {
	// Requests counts the sent requests by Kubernetes verb.
	Requests map[string]int64
	// Failures counts failed requests and broken watches.
	Failures map[status.RequestFailureKind]int64
	// Lists counts complete lists, ListTime is their total duration.
	Lists    int64
	ListTime time.Duration
	Relists  status.Relists
}

// counts is the compact form of Counts: without a map for the few verbs of a type.
type counts struct {
	requests         []verbCount
	failures         map[status.RequestFailureKind]int64 // nil without failures
	lists            int64
	listTime         time.Duration
	acceptedRequests int64
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

func (c *counts) toPublic() Counts {
	result := Counts{Requests: make(map[string]int64, len(c.requests)),
		Failures: map[status.RequestFailureKind]int64{},
		Lists:    c.lists, ListTime: c.listTime}
	for _, r := range c.requests {
		result.Requests[r.verb] = r.sent
	}
	maps.Copy(result.Failures, c.failures)
	return result
}

// AcceptedRequests returns the number of requests that the server has accepted. A request is counted before
// its events are delivered.
func (h *Health) AcceptedRequests() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.counts.acceptedRequests
}

// Counts returns the counters.
func (h *Health) Counts() Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.mu.counts.toPublic()
	c.Relists = h.mu.status.Relists
	return c
}
