// Package discovery lists the types of an API server, resolves names to types, and reports changes.
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
// A name is a plural, singular, short name, kind, category or pattern; see ParseName. Names resolve as in
// kubectl; see Catalog.Resolve.
//
// A Tracker follows the types of a server, and notifies its subscribers:
//
//	tracker, err := discovery.NewTracker(config, discovery.TrackerOptions{})
//	tracker.Subscribe(func(e discovery.Event) { fmt.Println(e.Action, e.Type.GroupResource) })
//	go tracker.Run(ctx)
//	err = tracker.WaitForSync(ctx)
//	res, err := tracker.Snapshot().Catalog().Resolve("certs")
//
// The subpackage crd reads schemas, columns and selectable fields.
//
// # Consistency
//
// A Catalog is an immutable snapshot. A Client fetches it again when it is older than Options.TTL, and
// whenever a name is not found, but at most once a second; resolving an unknown name may therefore wait up to
// a second. A group version with failed or stale discovery is unknown rather than absent: its earlier
// types remain, marked Resource.Stale, and errors name it.
//
// A Tracker is eventually consistent. Events of one type are in order; there is no order between types, and
// several changes of a type may be merged into one. A CRD with another UID is always Removed and then Added.
// A new subscriber gets the current state as Added events first. A Snapshot may be newer than the events
// received so far.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Returned slices may be shared: do not change them. Each
// subscription calls its handler from one goroutine, without locks. A handler may call everything in this
// package except waiting for its own Done, and a slow handler only delays its own queue.
package discovery
