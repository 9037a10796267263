package health

import (
	"maps"
	"time"

	"github.com/crdcache/crdcache/internal/requests"
)

// Counts tell what became of the requests of an informer since it was made. All of them only grow.
type Counts struct {
	// Requests counts the requests that were sent, by the verb that users know.
	Requests map[string]int64
	// Failures counts those that failed, and watches that broke off.
	Failures map[Failure]int64
	// Lists counts the lists that were read to their end, which took ListTime in all.
	Lists    int64
	ListTime time.Duration
	Relists  Relists
}

// Failure is a kind of failure.
type Failure struct {
	Verb   string
	Reason requests.Reason
}

func newCounts() Counts {
	return Counts{Requests: map[string]int64{}, Failures: map[Failure]int64{}}
}

func (c *Counts) failed(verb requests.Verb, reason requests.Reason) {
	c.Failures[Failure{verb.String(), reason}]++
}

// Counts returns what has been counted so far.
func (h *Health) Counts() Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.mu.counts
	c.Requests, c.Failures = maps.Clone(c.Requests), maps.Clone(c.Failures)
	c.Relists = h.mu.status.Relists
	return c
}
