package requests

import "sync"

// interruption closes watches before their timeout. It is safe for concurrent use.
type interruption struct {
	mu        sync.Mutex
	requested bool
	// closeWatch closes the open watch; nil if none is open.
	closeWatch func()
}

// interrupt closes the open watch, or the next one if none is open, although its options may be chosen.
func (i *interruption) interrupt() {
	i.mu.Lock()
	i.requested = true
	closeWatch := i.closeWatch
	i.mu.Unlock()
	if closeWatch != nil {
		closeWatch()
	}
}

func (i *interruption) opened(closeWatch func()) {
	i.mu.Lock()
	i.closeWatch = closeWatch
	requested := i.requested
	i.mu.Unlock()
	if requested {
		closeWatch()
	}
}

// closed records that the watch has ended.
func (i *interruption) closed() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.requested, i.closeWatch = false, nil
}

// pending reports whether the open watch is interrupted.
func (i *interruption) pending() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.requested
}
