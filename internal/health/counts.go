package health

import (
	"maps"
	"time"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/requests"
)

// Counts tell what became of the requests of an informer since it was made. All of them only grow.
type Counts struct {
	// Requests counts the requests that were sent, by the verb that users know.
	Requests map[string]int64
	// Failures counts those that failed, and watches that broke off.
	Failures map[status.RequestFailureKind]int64
	// Lists counts the lists that were read to their end, which took ListTime in all.
	Lists    int64
	ListTime time.Duration
	Relists  status.Relists
}

// counts are the Counts as they are kept: without a map for the few verbs that there are, of which each type
// has one.
type counts struct {
	requests []verbCount
	failures map[status.RequestFailureKind]int64 // nil: there are none
	lists    int64
	listTime time.Duration
	// answered counts the requests that the server accepted.
	answered int64
}

// verbCount is how many requests of a verb were sent.
type verbCount struct {
	verb string
	sent int64
}

// sent counts a request.
func (c *counts) sent(verb requests.Verb) {
	name := verb.String()
	for i := range c.requests {
		if c.requests[i].verb == name {
			c.requests[i].sent++
			return
		}
	}
	c.requests = append(c.requests, verbCount{name, 1})
}

func (c *counts) failed(verb requests.Verb, reason requests.Reason) {
	if c.failures == nil {
		c.failures = map[status.RequestFailureKind]int64{}
	}
	c.failures[status.RequestFailureKind{Verb: verb.String(), Reason: reason}]++
}

// public returns the Counts.
func (c *counts) public() Counts {
	all := Counts{Requests: make(map[string]int64, len(c.requests)),
		Failures: map[status.RequestFailureKind]int64{},
		Lists:    c.lists, ListTime: c.listTime}
	for _, r := range c.requests {
		all.Requests[r.verb] = r.sent
	}
	maps.Copy(all.Failures, c.failures)
	return all
}

// Answered counts the requests that the server has accepted. What a stream brings is brought after it counts.
func (h *Health) Answered() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.counts.answered
}

// Counts returns what has been counted so far.
func (h *Health) Counts() Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.mu.counts.public()
	c.Relists = h.mu.status.Relists
	return c
}
