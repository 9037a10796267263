// Package shard divides work among the replicas of a program: N shards, of which each replica holds its fair
// share, and none is held by two.
//
// # Usage
//
// A Member shares by Leases:
//
//	member, err := shard.New(shard.Options{Config: config, Namespace: "operators", Name: "delivery"})
//	err = member.Run(ctx, shard.Handler{
//		// Acquired starts the work of these shards.
//		Acquired: func(tenures []*shard.Tenure) { ... },
//		// Drain returns when the work of the shard has ended.
//		Drain: func(ctx context.Context, tenure *shard.Tenure) { ... },
//	})
//
// [Static] is for the replicas of a StatefulSet whose number is fixed, without any Lease. What a shard is, is
// for the program to say; package controllerruntime makes each a part of the hash space of objects, and
// docs/sharding.md tells the whole.
//
// # How it works
//
// Each shard is one Lease, held through client-go's tools/leaderelection. Each replica also has a Lease of
// its own, by which the others know that it is there. All replicas watch these Leases and decide by the same
// rule: who has fewer than a fair share takes what is free, and who has more gives up one shard at a time
// while no other is free, so that at most one of each replica's shards is nobody's while shards are moved.
// Before a shard is given up the handler drains it. A replica that ends drains all.
//
// # Safety
//
// No two replicas hold a shard at the same time, to the extent that a Lease can promise it:
//
//   - A replica takes a shard only if the Lease says that nobody holds it, or has not changed for as long as
//     it says since the replica first saw it as it is, by the replica's own clock. The write fails if the
//     Lease is not as it was read.
//   - A Tenure ends, and its context with it, when RenewDeadline has passed since the last successful renewal
//     was sent. What is between that and LeaseDuration, 10 s by default, is for work to end, and for clocks
//     that run at different speeds. What clocks show does not count.
//   - A shard is released only when Drain has returned, and not taken again by the same replica before that.
//
// What is left is a process that does not run: one that is paused for long enough goes on, when it continues,
// with what it was doing until it looks. [Tenure.Valid] looks at the clock. For writes, [Tenure.Token]
// fences: it is greater for each tenure of a shard than for the one before. It is greater than any resource
// version of the Lease before the acquisition, and an annotation of the Lease keeps it. So tokens grow when
// somebody resets or deletes the Lease, also for replicas that start afterwards. When etcd is restored to an
// older revision, tokens grow only for replicas that have seen the earlier ones, and for those that acquire a
// shard after them.
//
// Who deletes the Leases of a group while replicas run gives up that a shard has one holder: a replica that
// has just started does not know that there was a Lease. Those that have seen it wait until it would have
// expired, and its holder makes it again.
//
// # Liveness
//
// While the API server can be reached, the shards of a replica that was killed are taken within LeaseDuration
// and one RetryPeriod, 50 s by default, and those of one that ends in order as soon as they are drained. A
// replica that cannot reach the API server gives up its shards after RenewDeadline.
//
// # Cost
//
// All replicas together write each Lease once in a RetryPeriod, or up to a fifth more often: with 64 shards
// and 4 replicas, 7 to 8.5 small updates a second, however many objects there are; so many nodes send as many
// heartbeats. Each replica has one watch, which brings it each of these. Shorter periods cost more: with 15,
// 10 and 2 seconds, which client-go's leader election has by default, it would be 34 to 43 updates a second.
//
// # Concurrency
//
// Everything is safe for concurrent use. A Handler's Acquired is called by one goroutine, and Drain by one
// for each shard.
package shard
