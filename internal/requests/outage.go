package requests

import (
	"sync"
	"time"
)

// outage spreads the requests for a server that does not answer: those of all types take turns, and when
// one is answered, all types go on at once. The zero value is ready for use. It is safe for concurrent use.
type outage struct {
	mu   sync.Mutex
	next time.Time     // of the next turn
	over chan struct{} // closed when a request is answered; nil: no type waits
}

// turn returns when a request may be sent that is due at a time, and a channel that is closed when the
// server has answered another request before that.
func (o *outage) turn(due time.Time) (at time.Time, over <-chan struct{}) {
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

// answered ends the outage.
func (o *outage) answered() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over != nil {
		close(o.over)
		o.over = nil
	}
}
