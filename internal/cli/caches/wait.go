package caches

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// errRefused ends a wait for requests that will not be answered better next time.
var errRefused = errors.New("the server calls the request wrong")

// hopeless is closed when no type is left that waiting could help. Informers go on asking after a 400, as they do
// after any failure that may pass; but here it is the person's selector that is wrong.
type hopeless struct {
	once  sync.Once
	ended chan struct{}
	// asked is set once all informers are made and begin to ask: states are told of before that, too.
	asked atomic.Bool
}

// listen looks at what happens to types before another listener does.
func (c *Caches) listen(next dynamicinformer.Listener) dynamicinformer.Listener {
	tell := next.StateChanged
	next.StateChanged = func(before, after dynamicinformer.Status) {
		if c.hopeless.asked.Load() && c.allHopeless() {
			c.hopeless.once.Do(func() { close(c.hopeless.ended) })
		}
		if tell != nil {
			tell(before, after)
		}
	}
	return next
}

// allHopeless reports whether each type is settled or asked for in a way that the server calls wrong, which one is.
func (c *Caches) allHopeless() bool {
	wrong := false
	for _, cached := range c.All {
		status := cached.Informer.Status()
		refused := apierrors.IsBadRequest(status.LastError)
		if !status.Settled() && !refused {
			return false
		}
		wrong = wrong || refused
	}
	return wrong
}

// wait waits until all types are settled or hopeless, or ctx ends.
func (c *Caches) wait(ctx context.Context) error {
	waiting, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() { // ended by end
		select {
		case <-c.hopeless.ended:
			end(errRefused)
		case <-waiting.Done():
		}
	}()
	_, err := c.factory.WaitForSync(waiting)
	var unsynced *dynamicinformer.NotSyncedError
	if errors.As(err, &unsynced) && errors.Is(unsynced.Cause, errRefused) {
		return &dynamicinformer.NotSyncedError{Missing: unsynced.Missing} // each says why
	}
	return err
}
