// Package discovery answers which types an API server has, what a name that a person typed stands for,
// and what changes while a program runs.
//
// # Usage
//
// A Client fetches and caches discovery documents, and resolves names:
//
//	client, err := discovery.NewClient(cfg, discovery.Options{})
//	res, err := client.Resolve(ctx, "certs.cert-manager.io")
//	for _, r := range res.Resources {
//		fmt.Println(r.GVR, r.Scope)
//	}
//
// A name is a plural, singular, short name, kind, category or pattern; see ParseName. Names resolve as
// kubectl resolves them; see Catalog.Resolve.
//
// # Consistency
//
// A Catalog is an immutable snapshot. A Client asks the server again when the snapshot is older than
// Options.TTL and whenever a name is not found, but at most once a second. A group version whose
// discovery failed or is stale is unknown rather than absent: what was known of it stays, marked
// Resource.Stale, and errors name it.
//
// # Concurrency
//
// Everything exported is safe for concurrent use. Slices in returned values may be shared: do not
// change them.
package discovery
