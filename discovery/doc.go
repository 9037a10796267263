// Package discovery answers which types an API server has, what a name that a person typed stands for,
// and what changes while a program runs.
//
// # Usage
//
// A Client fetches and caches discovery documents, and resolves names:
//
//	client, err := discovery.NewClient(config, discovery.Options{})
//	res, err := client.Resolve(ctx, "certs.cert-manager.io")
//	for _, r := range res.Resources {
//		fmt.Println(r.GVR, r.Scope)
//	}
//
// A name is a plural, singular, short name, kind, category or pattern; see ParseName. Names resolve as
// kubectl resolves them; see Catalog.Resolve.
//
// A Tracker follows what exists, and tells its subscribers:
//
//	tracker, err := discovery.NewTracker(config, discovery.TrackerOptions{})
//	tracker.Subscribe(func(e discovery.Event) { fmt.Println(e.Kind, e.Type.GroupResource) })
//	go tracker.Run(ctx)
//	err = tracker.WaitForSync(ctx)
//	res, err := tracker.Snapshot().Catalog().Resolve("certs")
//
// Package crd, below this one, reads schemas, columns and selectable fields.
//
// # Consistency
//
// A Catalog is an immutable snapshot. A Client asks the server again when the snapshot is older than
// Options.TTL and whenever a name is not found, but at most once a second: a name that is not found is
// looked for again, and waited for until a second has passed since the last time. A group version whose
// discovery failed or is stale is unknown rather than absent: what was known of it stays, marked
// Resource.Stale, and errors name it.
//
// A Tracker is eventually consistent. Events of one type come in the order in which they happened; nothing
// is promised about the order between types, and several changes of a type may arrive as one. Another UID
// of a CRD is always Removed and then Added. A listener that subscribes late gets the current state as
// Added events first. What a Snapshot shows may be ahead of what a listener was told.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Slices in returned values may be shared: do not
// change them. Handlers are called from one goroutine per subscription, with no lock held: they may call
// everything in this package but wait for their own Done, and a slow one only lengthens its own queue.
package discovery
