package discovery

import "sync"

// Subscription delivers the events of a Tracker to one handler, in order, from a goroutine of its own:
// a slow handler delays nobody else.
type Subscription struct {
	handler func(Event)
	quit    chan struct{} // closed by Stop
	wake    chan struct{} // capacity 1: the queue is not empty
	done    chan struct{} // closed when the goroutine ended
	once    sync.Once

	mu struct {
		sync.Mutex
		queue []Event
	}
}

// newSubscription starts the goroutine, which ends with Stop or when ended is closed.
func newSubscription(handler func(Event), ended <-chan struct{}) *Subscription {
	s := &Subscription{
		handler: handler,
		quit:    make(chan struct{}), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	go s.deliver(ended)
	return s
}

// Stop ends the delivery; events still queued are dropped. It does not wait for a call of the handler
// that is under way (Done does), so it may be called from the handler, more than once, and at any time.
func (s *Subscription) Stop() { s.once.Do(func() { close(s.quit) }) }

// Done is closed when the handler is not called any more, after Stop or the end of the tracker.
func (s *Subscription) Done() <-chan struct{} { return s.done }

// Pending returns how many events wait for the handler.
func (s *Subscription) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.queue)
}

// push queues events. It never blocks.
func (s *Subscription) push(events []Event) {
	s.mu.Lock()
	s.mu.queue = append(s.mu.queue, events...)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *Subscription) deliver(ended <-chan struct{}) {
	defer close(s.done)
	for {
		select {
		case <-s.quit:
			return
		case <-ended:
			return
		case <-s.wake:
		}
		for e, ok := s.next(); ok; e, ok = s.next() {
			select {
			case <-s.quit:
				return
			case <-ended:
				return
			default:
				s.handler(e)
			}
		}
	}
}

func (s *Subscription) next() (Event, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.queue) == 0 {
		s.mu.queue = nil // let a long queue's memory go
		return Event{}, false
	}
	e := s.mu.queue[0]
	s.mu.queue[0] = Event{}
	s.mu.queue = s.mu.queue[1:]
	return e, true
}
