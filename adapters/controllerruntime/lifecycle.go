package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/queue"
)

type cacheState int

const (
	cacheNew cacheState = iota
	cacheRunning
	cacheEnded
	// cacheFactoryStopped: the factory was shut down by its owner, so the content is out of date.
	cacheFactoryStopped
)

// Start runs all informers, also informers created later, until ctx ends or Close is called. It returns when
// they have stopped, and can be called once. It returns an error that wraps ErrStopped if the owner of a
// shared factory shuts it down first; all reads fail after that.
func (c *Cache) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(dynamicinformer.ErrStopped) })()
	// Others may use the informers of a shared factory. They stop when the cache releases them.
	runCtx, stop := context.WithoutCancel(ctx), func() {}
	if c.options.Factory == nil {
		runCtx, stop = context.WithCancel(runCtx)
	}
	defer stop()
	unregister, err := c.startFactory(runCtx)
	if err != nil {
		return err
	}
	defer unregister()
	done := make(chan struct{})
	typesCtx, stopTypes := context.WithCancel(ctx)
	defer stopTypes()
	go func() {
		defer close(done)
		if c.types != nil {
			c.types.run(typesCtx)
		}
	}()
	select {
	case <-ctx.Done():
	case <-c.factory.Done():
		if ctx.Err() == nil {
			err = fmt.Errorf("the factory of the cache was shut down by its owner: %w", dynamicinformer.ErrStopped)
		}
	}
	c.mu.Lock()
	if c.mu.state = cacheEnded; err != nil {
		c.mu.state = cacheFactoryStopped
	}
	resources := slices.Collect(maps.Values(c.mu.resources)) // no others are created
	c.mu.Unlock()
	if c.options.Factory != nil {
		for _, r := range resources {
			r.close()
		}
		return err
	}
	// As with the stock cache, queued events are dropped, and a handler that does not return blocks this.
	stop()
	err = errors.Join(err, c.factory.Shutdown(context.WithoutCancel(ctx)))
	stopTypes()
	<-done
	return err
}

// Close ends the cache. A cache that was not started needs it to release the informers of a shared factory.
// For a running cache, Close cancels Start and does not wait for it to return. It can be called again.
func (c *Cache) Close() {
	c.close()
	c.mu.Lock()
	if c.mu.state != cacheNew {
		c.mu.Unlock()
		return // Start releases the informers
	}
	c.mu.state = cacheEnded
	resources := slices.Collect(maps.Values(c.mu.resources))
	c.mu.Unlock()
	for _, r := range resources {
		r.close()
	}
	if c.options.Factory == nil {
		_ = c.factory.Shutdown(context.Background()) // nothing is running
	}
}

// startFactory starts the factory once, until runCtx ends. unregister removes its metrics.
func (c *Cache) startFactory(runCtx context.Context) (unregister func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ctx.Err() != nil:
		return nil, fmt.Errorf("start a closed cache: %w", dynamicinformer.ErrStopped)
	case c.mu.state != cacheNew:
		return nil, errors.New("informer already started")
	}
	if err := c.factory.Start(runCtx); err != nil {
		return nil, err
	}
	unregister = c.registerMetrics()
	c.mu.state = cacheRunning
	close(c.started)
	return unregister, nil
}

func (c *Cache) hasStarted() bool { return queue.IsClosed(c.started) }

// ended reports whether the cache has ended. It returns false for cacheFactoryStopped.
func (c *Cache) ended() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.mu.state == cacheEnded
}

// WaitForCacheSync waits until the cache has been started and all informers requested before have synced.
// It returns false if ctx ends first.
func (c *Cache) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c.started:
	case <-c.ctx.Done():
		return false
	case <-ctx.Done():
		return false
	}
	c.mu.RLock()
	resources := slices.Collect(maps.Values(c.mu.resources))
	c.mu.RUnlock()
	for _, r := range resources {
		err := r.read(func(s *informerSet) error {
			return naming.Each(s.informers(), func(informer *dynamicinformer.Informer) error {
				return awaitReadable(ctx, informer, nil)
			})
		})
		removed := errors.Is(err, dynamicinformer.ErrStopped) && r.informer.closed.Load() && !c.ended()
		if err != nil && !removed {
			return false
		}
	}
	return true
}

var errMissingType = errors.New("the type does not exist")

// awaitReadable waits until an informer can be read: until it has synced, or its type was deleted from the
// server with all its objects. It returns ErrStopped if the informer stops first, or the cause of the end of
// ctx. It returns errMissingType as soon as isMissing, which can be nil, accepts the status.
func awaitReadable(ctx context.Context, informer *dynamicinformer.Informer,
	isMissing func(status.Status) bool) error {
	for {
		if informer.HasSynced() {
			return nil
		}
		current, changed := informer.StatusChange()
		switch {
		case current.State == status.Stopped:
			return dynamicinformer.ErrStopped
		case isMissing != nil && isMissing(current) && !informer.HasSynced():
			return errMissingType
		case current.State == status.Pending && current.Incarnation > 0 && !current.Suspended &&
			current.Reason == status.ReasonNotInstalled:
			return nil
		}
		select {
		case <-informer.Synced():
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
