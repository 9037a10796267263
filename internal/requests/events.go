package requests

import (
	"context"
	"io"

	"k8s.io/apimachinery/pkg/watch"
)

// events is an open watch: a codec.Events or clientEvents.
type events interface {
	// Next returns the next event, or an error, which is io.EOF at the end. waited reports whether Next had
	// to wait for the event. An event without a type represents a filtered object.
	Next() (event watch.Event, waited bool, err error)
	// Close ends the watch and unblocks Next.
	Close() error
}

// clientEvents is the watch of a dynamic client.
type clientEvents struct {
	watch.Interface
	ctx     context.Context
	attempt *attempt
}

func (c *clientEvents) Next() (event watch.Event, waited bool, err error) {
	c.attempt.awaitData()
	defer c.attempt.dataArrived()
	select {
	case event, ok := <-c.ResultChan():
		if !ok {
			return event, true, io.EOF
		}
		return event, true, nil
	case <-c.ctx.Done():
		return event, true, context.Cause(c.ctx)
	}
}

func (c *clientEvents) Close() error {
	c.Stop()
	return nil
}

// watchPipe is a watch that a goroutine reads.
type watchPipe struct {
	*watch.ProxyWatcher
	attempt *attempt
}

// newPipe returns a watch of the events that read passes to its argument. a is the attempt of the request.
func newPipe(a *attempt, read func(take func(watch.Event) bool)) watchPipe {
	events := make(chan watch.Event)
	p := watchPipe{watch.NewProxyWatcher(events), a}
	go func() { // ended by Stop, or by the end of the watch
		defer close(events)
		read(func(event watch.Event) bool {
			select {
			case events <- event:
				return true
			case <-p.StopChan():
				return false
			}
		})
	}()
	return p
}

func (p watchPipe) Stop() {
	p.ProxyWatcher.Stop()
	p.attempt.cancel(nil)
}
