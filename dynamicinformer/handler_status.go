package dynamicinformer

import "time"

// HandlerStatus is what is known of an event handler of an informer.
type HandlerStatus struct {
	// Name is the name that Named or TypedHandler.Name gave the handler, or its Go type.
	Name string
	// Depth is how many events wait in the handler's queue, with the one being handled. A depth that grows
	// and grows is that of a handler that is too slow.
	Depth int
	// Lag is how long ago the oldest of these events was queued, right after the cache had changed: how far the handler
	// is behind the cache. It is 0 when none waits.
	Lag time.Duration
	// Synced says whether the handler has returned from the last object of the initial list.
	Synced bool
}

// Handlers returns the event handlers that the informer has now, in the order in which they were added. Those of
// subscriptions are among them.
func (i *Informer) Handlers() []HandlerStatus {
	registrations := i.core.Registrations()
	all := make([]HandlerStatus, 0, len(registrations))
	for _, r := range registrations {
		all = append(all, HandlerStatus{Name: r.Name(), Depth: r.Depth(), Lag: r.Lag(), Synced: r.HasSynced()})
	}
	return all
}
