package bind

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
)

// Run binds a config to the types of a cluster until ctx ends, with a tracker and a factory of its own. It
// returns when the types of the config have synced, or an error if one cannot. Types that are installed later
// are bound, too. At most one Options can be given.
func Run(ctx context.Context, cluster *rest.Config, config *indexers.Config, options ...Options) (*Binding,
	error) {
	tracker, err := discovery.NewTracker(cluster, discovery.TrackerOptions{})
	if err != nil {
		return nil, fmt.Errorf("bind: %w", err)
	}
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: cluster, Types: tracker.Types()})
	if err != nil {
		return nil, fmt.Errorf("bind: %w", err)
	}
	b, err := New(factory, config, append(options, Options{})[0])
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	context.AfterFunc(ctx, func() {
		b.Close()
		_ = factory.Close() // never fails
		cancel(nil)
	})
	go func() { _ = tracker.Run(ctx) }() // ends with ctx
	if err = tracker.WaitForSync(ctx); err == nil {
		b.Follow(tracker) // ends with the tracker
		if err = factory.Start(ctx); err == nil {
			err = factory.WaitForSync(ctx)
		}
	}
	if err != nil {
		cancel(err)
		return nil, err
	}
	return b, nil
}
