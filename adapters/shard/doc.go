// Package shard divides N shards of work among the replicas of a program. Each replica holds a fair share,
// and no two replicas hold one shard.
//
// # Usage
//
// A Member uses Leases:
//
//	member, err := shard.New(shard.Options{Config: config, Namespace: "operators", Name: "delivery"})
//	err = member.Run(ctx, shard.Handler{
//		// Acquired starts the work of these shards.
//		Acquired: func(ownerships []*shard.Ownership) { ... },
//		// Drain returns when the work of the shard has ended.
//		Drain: func(ctx context.Context, ownership *shard.Ownership) { ... },
//	})
//
// [Static] needs no Leases. It is for StatefulSets with a fixed number of replicas. The program defines the
// meaning of a shard. Package controllerruntime makes each shard a range of the hash space of objects. See
// docs/sharding.md.
//
// # How it works
//
// Each shard has a Lease. Each replica also renews a member Lease as its heartbeat. All replicas watch these
// Leases and decide by the same rule: a replica with less than a fair share takes free shards, and one with
// more gives up a shard while none is free. Shards are drained before they are given up.
//
// # Safety
//
// No two replicas hold a shard at the same time, as far as a Lease can guarantee it. A replica takes a shard
// only if its Lease has no holder, or was observed unchanged for its duration by the replica's own clock. An
// Ownership and its context end when RenewDeadline has passed since the last successful renewal was sent. The
// rest of LeaseDuration (10 s by default) allows for clocks of different speeds.
//
// A process that was paused past the deadline continues its work until it checks [Ownership.Valid].
// [Ownership.Token] fences writes: each ownership of a shard has a greater token than the one before, also if
// the Lease, whose annotation stores it, is reset or deleted. After a restore of etcd to an older revision,
// tokens grow only if a replica that has observed the last one acquires the shard first. Do not delete the
// Leases of a group while replicas run.
//
// # Concurrency
//
// Everything is safe for concurrent use. One goroutine calls Handler.Acquired, and one goroutine per shard
// calls Handler.Drain.
package shard
