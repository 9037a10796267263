package controllerruntime

import (
	"context"
	"errors"
	"fmt"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// cacheState says where a Cache is in its life.
type cacheState int

const (
	cacheFresh cacheState = iota
	cacheRunning
	cacheEnded
	// cacheLost is an end that somebody else made: what was read last may be out of date for good.
	cacheLost
)

// Start runs all informers, those that are asked for later too, until ctx ends or Close is called, and
// returns when they have ended. It can be called once. If ctx has ended already, it starts nothing and
// returns the cause. It fails with an ErrStopped if the owner of a shared factory shuts it down before: all
// reads fail after that.
func (c *Cache) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.life, func() { cancel(dynamicinformer.ErrStopped) })()
	unregister, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer unregister()
	done := make(chan struct{})
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	// Ended by ctx, or with the factory.
	go func() {
		defer close(done)
		if c.types != nil {
			c.types.run(following)
		}
	}()
	select {
	case <-ctx.Done():
	case <-c.factory.Done():
		if ctx.Err() == nil {
			err = fmt.Errorf("the factory of the cache was shut down by somebody else: %w",
				dynamicinformer.ErrStopped)
		}
	}
	resources := c.end(err)
	if c.options.Factory != nil {
		for _, r := range resources {
			r.close()
		}
		return err
	}
	// Handlers that do not return hold it up, as with the stock cache.
	err = errors.Join(err, c.factory.Shutdown(context.WithoutCancel(ctx)))
	unfollow()
	<-done
	return err
}

// Close ends the cache for good. A cache that is not started needs it to release a shared factory's
// informers; Start fails with an ErrStopped then. For a running cache it has the effect of the end of Start's
// context, and does not wait for Start to return. It can be called again.
func (c *Cache) Close() {
	c.close()
	c.mu.Lock()
	if c.mu.state != cacheFresh {
		c.mu.Unlock()
		return // Start gives up the informers
	}
	c.mu.state = cacheEnded
	resources := c.resourcesLocked()
	c.mu.Unlock()
	for _, r := range resources {
		r.close()
	}
	if c.options.Factory == nil {
		_ = c.factory.Shutdown(context.Background()) // nothing runs that it could wait for
	}
}

// begin starts the factory, once, and returns what takes its metrics back.
func (c *Cache) begin(ctx context.Context) (unregister func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.life.Err() != nil:
		return nil, fmt.Errorf("start a closed cache: %w", dynamicinformer.ErrStopped)
	case c.mu.state != cacheFresh:
		return nil, errors.New("informer already started")
	case ctx.Err() != nil:
		return nil, fmt.Errorf("start the cache: %w", context.Cause(ctx))
	}
	// Others may hold the same informers, or ask for more. Those of the cache end with its claims, or with
	// Shutdown.
	if err := c.factory.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	unregister = c.registerMetrics()
	c.mu.state = cacheRunning
	close(c.started)
	return unregister, nil
}

// hasStarted reports whether Start has been called.
func (c *Cache) hasStarted() bool {
	select {
	case <-c.started:
		return true
	default:
		return false
	}
}

// end admits no more informers, and returns those there are. lost is nil for the end of Start's context.
func (c *Cache) end(lost error) []*resource {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.state = cacheEnded
	if lost != nil {
		c.mu.state = cacheLost
	}
	return c.resourcesLocked()
}

// ended reports whether the cache has ended. It does not count as the end when its informers are lost to it.
func (c *Cache) ended() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.mu.state == cacheEnded
}

func (c *Cache) resourcesLocked() []*resource {
	all := make([]*resource, 0, len(c.mu.resources))
	for _, r := range c.mu.resources {
		all = append(all, r)
	}
	return all
}

// WaitForCacheSync waits until the cache has been started and all informers that have been asked for up to
// then have synced. It returns false when ctx ends before.
func (c *Cache) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c.started:
	case <-c.life.Done():
		return false
	case <-ctx.Done():
		return false
	}
	c.mu.RLock()
	resources := c.resourcesLocked()
	c.mu.RUnlock()
	for _, r := range resources {
		for _, v := range r.views {
			err := await(ctx, v.informer())
			if errors.Is(err, dynamicinformer.ErrStopped) && r.informer.isClosed() && !c.ended() {
				continue // somebody has removed it meanwhile
			}
			if err != nil {
				return false
			}
		}
	}
	return true
}

// await waits until an informer can be read: until it has synced, or its type, which it followed before, is
// known to be gone, with all its objects. It returns an ErrStopped when it has stopped before, or why ctx
// ended.
func await(ctx context.Context, informer *dynamicinformer.Informer) error {
	for {
		if informer.HasSynced() {
			return nil
		}
		current, changed := informer.StatusChange()
		switch {
		case current.State == status.Stopped:
			return dynamicinformer.ErrStopped
		case current.State == status.Pending && current.Generation > 0 &&
			(current.Reason == status.ReasonNotInstalled || current.Reason == status.ReasonVersionNotServed):
			return nil
		}
		select {
		case <-informer.HasSyncedChecker().Done():
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
