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
// Each shard has a Lease, which is held through client-go's tools/leaderelection. Each replica also renews a
// member Lease as its heartbeat. All replicas watch these Leases and decide by the same rule. A replica with
// less than a fair share takes free shards. A replica with more gives up a shard, but only while no shard is
// free. Each replica therefore releases at most one shard at a time. The handler drains a shard before it is
// given up. A replica that ends drains all its shards.
//
// # Safety
//
// No two replicas hold a shard at the same time, as far as a Lease can guarantee it:
//
//   - A replica takes a shard only if its Lease has no holder, or has expired. A Lease has expired when the
//     replica has observed it unchanged for its duration, measured by the replica's own clock. The update
//     of the Lease fails if the Lease has changed since it was read.
//   - An Ownership and its context end when RenewDeadline has passed since the last successful renewal was
//     sent. The rest of LeaseDuration (10 s by default) lets work end, and allows for clocks that run at
//     different speeds. Replicas never compare their clocks.
//   - A replica releases a shard, or acquires it again, only after Drain has returned.
//
// A process that was paused past the deadline continues its work until it checks [Ownership.Valid].
// [Ownership.Token] fences writes: each ownership of a shard has a greater token than the one before. An
// annotation of the Lease stores the token. The token is greater than any resource version of the Lease
// before the acquisition, so tokens also grow if the Lease is reset or deleted. After a restore of etcd to an
// older revision, tokens grow only if a replica that has observed the last one acquires the shard first.
//
// Do not delete the Leases of a group while replicas run. A replica that has just started does not know that
// a Lease existed, and acquires the shard. Replicas that have observed the Lease wait until it would have
// expired, and its holder creates it again.
//
// # Liveness
//
// If the API server is reachable, the shards of a killed replica are taken within LeaseDuration and one
// RetryPeriod, 50 s by default. The shards of a replica that ends are taken as soon as they are drained. A
// replica that cannot reach the API server gives up its shards after RenewDeadline.
//
// # Cost
//
// All replicas together write each Lease once in a RetryPeriod, or up to a fifth more often. With 64 shards
// and 4 replicas these are 7 to 8.5 small updates a second, like the heartbeats of 70 to 85 nodes. The
// number of objects does not matter. Each replica has one watch, which receives all updates. Shorter periods
// cost more: client-go's defaults for leader election, 15, 10 and 2 s, would be 34 to 43 updates a second.
//
// # Concurrency
//
// Everything is safe for concurrent use. One goroutine calls Handler.Acquired, and one goroutine per shard
// calls Handler.Drain.
package shard
