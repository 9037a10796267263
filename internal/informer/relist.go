package informer

import (
	"context"
	"slices"
)

// listRequest is a request for a list of one stream.
type listRequest struct {
	// ended is closed when a later list is stored (stored is true then), or the stream has ended.
	ended  chan struct{}
	stored bool
}

// listRequests are the requests to list a stream: next are satisfied by the next list, running by the running
// list. They are guarded by Informer.mu.
type listRequests struct{ next, running []*listRequest }

// endRequests ends requests.
func endRequests(requests []*listRequest, stored bool) {
	for _, r := range requests {
		r.stored = stored
		close(r.ended)
	}
}

// Relist lists all partitions again, and waits until the lists are stored. It waits for partitions that do
// not run yet, as between two incarnations. Failed lists are repeated. It returns ErrStopped if the informer
// stops before, or the context's cause.
func (i *Informer) Relist(ctx context.Context) error {
	for {
		requests, started, err := i.requestLists()
		if err != nil {
			return err
		}
		stored := started == nil
		if started != nil {
			select {
			case <-started:
			case <-i.stopping:
				return ErrStopped
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		for _, r := range requests {
			select {
			case <-r.ended:
				stored = stored && r.stored
			case <-i.stopping:
				return ErrStopped
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if stored { // otherwise a partition ended, and others may have replaced it
			return nil
		}
	}
}

// requestLists requests a list of each partition. If not all partitions run, it requests none, and returns a
// channel that is closed when that may have changed.
func (i *Informer) requestLists() (requests []*listRequest, started <-chan struct{}, err error) {
	i.mu.Lock()
	streams := slices.Clone(i.mu.streams)
	running, err := i.allStreamsRunLocked()
	if err != nil || !running {
		if i.mu.streamsChanged == nil {
			i.mu.streamsChanged = make(chan struct{})
		}
		started = i.mu.streamsChanged
		i.mu.Unlock()
		return nil, started, err
	}
	for _, w := range streams {
		requests = append(requests, w.requestListLocked())
	}
	i.mu.Unlock()
	for _, w := range streams {
		w.lw.Interrupt()
	}
	return requests, nil, nil
}

// allStreamsRunLocked reports whether each partition of a running incarnation has a stream. There are no
// partitions if no objects are selected.
func (i *Informer) allStreamsRunLocked() (bool, error) {
	g := i.mu.current
	switch {
	case i.mu.state == StateStopped:
		return false, ErrStopped
	case g == nil, len(i.mu.partitions) == 0 && g.pendingLists > 0:
		return false, nil
	}
	for _, p := range i.mu.partitions {
		if !slices.ContainsFunc(i.mu.streams, func(w *inlineWatch) bool { return w.partition == p }) {
			return false, nil
		}
	}
	return true, nil
}

// streamsChangedLocked wakes the callers of Relist that wait for partitions.
func (i *Informer) streamsChangedLocked() {
	if i.mu.streamsChanged != nil {
		close(i.mu.streamsChanged)
		i.mu.streamsChanged = nil
	}
}

func (w *inlineWatch) requestListLocked() *listRequest {
	r := &listRequest{ended: make(chan struct{})}
	w.lists.next = append(w.lists.next, r)
	return r
}

// beginList records that a list begins.
func (w *inlineWatch) beginList() {
	w.informer.mu.Lock()
	defer w.informer.mu.Unlock()
	w.lists.running = append(w.lists.running, w.lists.next...)
	w.lists.next = nil
	w.listsMissing = w.listsMissing && len(w.lists.running) == 0
	if s := w.Selection; s != nil && s.IsIncomplete() {
		s.Complete()
		w.partition.resumeVersion = "" // the store lacks objects
	}
}

// ListMissing lists the running partitions that lack objects, and reports whether there are any.
func (i *Informer) ListMissing() bool {
	i.mu.Lock()
	streams := slices.DeleteFunc(slices.Clone(i.mu.streams),
		func(w *inlineWatch) bool { return !w.lacksObjectsLocked() })
	i.mu.Unlock()
	for _, w := range streams {
		w.lw.Interrupt()
	}
	return len(streams) > 0
}

// lacksObjectsLocked reports whether objects were selected, or a late handler was added, after the last list.
func (p *partition) lacksObjectsLocked() bool {
	return p.Selection != nil && p.Selection.IsIncomplete() || p.informer.mu.handlers.HasLate(p.listNumber)
}

// mustList reports whether the next request of the stream must be a list, not a watch from its version.
func (w *inlineWatch) mustList() bool {
	w.informer.mu.Lock()
	w.listsMissing = len(w.lists.next) == 0 && w.lacksObjectsLocked()
	lists := len(w.lists.next) > 0 || w.listsMissing
	w.informer.mu.Unlock()
	if lists {
		w.lw.RelistRequested()
	}
	return lists
}
