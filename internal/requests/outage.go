package requests

import (
	"sync"
	"time"
)

// outage spreads the requests to a server that does not answer: the types take turns. When one request is
// answered, all types continue immediately. The zero value is ready to use. It is safe for concurrent use.
type outage struct {
	mu   sync.Mutex
	next time.Time     // of the next turn
	over chan struct{} // closed when a request is answered; nil if no type waits
}

// nextAttempt returns when a request that is due may be sent, and a channel that is closed if the server
// answers another request before.
func (o *outage) nextAttempt(due time.Time) (at time.Time, over <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over == nil {
		o.over, o.next = make(chan struct{}), time.Time{}
	}
	if o.next.Before(due) {
		o.next = due
	}
	at = o.next
	o.next = at.Add(connectionPause.first)
	return at, o.over
}

func (o *outage) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over != nil {
		close(o.over)
		o.over = nil
	}
}
