package shard

import (
	"context"
	"fmt"
	"sync"
)

// Fixed assigns shards by the ordinal of a replica, without Leases. It is for StatefulSets with a fixed
// number of replicas. Create it with Static.
type Fixed struct {
	shards     int
	first, end int
}

// Static returns an Assigner of the shards of one replica. ordinal counts from 0, as in the label
// apps.kubernetes.io/pod-index of a StatefulSet's pod. The replicas get adjacent shards, about as many each.
// All replicas must have different ordinals and the same number of replicas; nothing checks that. To change
// the number of replicas of a StatefulSet, stop all pods before the first new one starts.
func Static(ordinal, replicas, shards int) (*Fixed, error) {
	if shards < 1 || shards > maxShards {
		return nil, fmt.Errorf("shard: %d shards: must be from 1 to %d", shards, maxShards)
	}
	if replicas < 1 || ordinal < 0 || ordinal >= replicas {
		return nil, fmt.Errorf("shard: ordinal %d of %d replicas: must be from 0 to replicas-1", ordinal, replicas)
	}
	return &Fixed{shards: shards, first: ordinal * shards / replicas,
		end: (ordinal + 1) * shards / replicas}, nil
}

// Shards returns the number of shards.
func (f *Fixed) Shards() int { return f.shards }

// Run calls Acquired with all shards, and drains them when ctx ends.
func (f *Fixed) Run(ctx context.Context, handler Handler) error {
	var ownerships []*Ownership
	for shard := f.first; shard < f.end; shard++ {
		ownerships = append(ownerships, newOwnership(context.WithoutCancel(ctx), shard))
	}
	if handler.Acquired != nil && len(ownerships) > 0 {
		handler.Acquired(ownerships)
	}
	<-ctx.Done()
	var group sync.WaitGroup
	for _, t := range ownerships {
		group.Go(func() { // ended by Drain
			if handler.Drain != nil {
				handler.Drain(ctx, t)
			}
			t.end(errReleased)
		})
	}
	group.Wait()
	return nil
}
