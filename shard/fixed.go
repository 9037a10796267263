package shard

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Fixed hands out shards by the position of a replica, without Leases: for a StatefulSet whose number of
// replicas is known. Make it with Static.
type Fixed struct {
	shards   int
	from, to int
}

var _ Assigner = (*Fixed)(nil)

// Static returns the shards of one of so many replicas, ordinal counting from 0: of neighbours about as many
// each. Nothing keeps two replicas apart that are given different numbers of replicas, or that are the same:
// a StatefulSet never runs two pods with one ordinal, but while its number of replicas changes, stop all of
// them before the first of the new ones starts.
func Static(ordinal, replicas, shards int) (*Fixed, error) {
	if shards < 1 || shards > maxShards {
		return nil, fmt.Errorf("shard: %d shards; there have to be from 1 to %d", shards, maxShards)
	}
	if replicas < 1 || ordinal < 0 || ordinal >= replicas {
		return nil, fmt.Errorf("shard: ordinal %d of %d replicas; it has to be from 0 to one less than the number of replicas", ordinal, replicas)
	}
	return &Fixed{shards: shards, from: ordinal * shards / replicas,
		to: (ordinal + 1) * shards / replicas}, nil
}

// Ordinal returns the ordinal at the end of the name of a pod of a StatefulSet: 2 for "web-2".
func Ordinal(pod string) (int, error) {
	at := strings.LastIndexByte(pod, '-')
	ordinal, err := strconv.ParseUint(pod[at+1:], 10, 31)
	if at < 1 || err != nil {
		return 0, fmt.Errorf("shard: %q is not the name of a pod of a StatefulSet, which ends in a hyphen and a number", pod)
	}
	return int(ordinal), nil
}

// Shards returns how many shards there are.
func (f *Fixed) Shards() int { return f.shards }

// Run hands out the shards at once, and drains all of them when ctx ends.
func (f *Fixed) Run(ctx context.Context, handler Handler) error {
	var tenures []*Tenure
	for shard := f.from; shard < f.to; shard++ {
		tenures = append(tenures, newTenure(context.WithoutCancel(ctx), shard))
	}
	if handler.Acquired != nil && len(tenures) > 0 {
		handler.Acquired(tenures)
	}
	<-ctx.Done()
	var group sync.WaitGroup
	for _, t := range tenures {
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
