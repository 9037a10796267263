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
	events chan watch.Event
	stop   func()
}

// newPipe returns a watch of the events that read passes to its argument. a is the attempt of the request.
func newPipe(a *attempt, read func(take func(watch.Event) bool)) *watchPipe {
	ctx, cancel := context.WithCancel(context.Background())
	p := &watchPipe{events: make(chan watch.Event), stop: func() {
		cancel()
		a.cancel(nil)
	}}
	go func() { // ended by Stop, or by the end of the watch
		defer close(p.events)
		defer cancel()
		read(func(event watch.Event) bool {
			select {
			case p.events <- event:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	return p
}

func (p *watchPipe) ResultChan() <-chan watch.Event { return p.events }
func (p *watchPipe) Stop()                          { p.stop() }
