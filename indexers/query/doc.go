// Package query finds objects in a cache by the indexes of a config, and says how.
//
// # Usage
//
// A [Querier] answers queries over a [Source]; [ForIndexer] makes one of any indexer of client-go. Queries
// are made by functions, or read from text by [Parse]:
//
//	querier := query.New(query.ForIndexer(informer.GetIndexer()), functions.Indexes()...)
//	q := query.And(query.Eq("issuer", "letsencrypt"), query.Less("expiry", "2026-03-01T00:00:00Z"))
//	q, err := query.Parse(`issuer=letsencrypt && expiry<2026-03-01T00:00:00Z`)
//	result, err := querier.Query(ctx, q, query.Options{SortBy: "expiry", Limit: 100})
//	for key, object := range result.All() { ... }
//
// [Querier.Values] gives the values of an index with the number of their objects, [Querier.Count] and
// [Querier.Keys] cost no decoding, and [Querier.Explain] says how a query would be answered. [Subscribe]
// tells about the objects of a query as they change. docs/query.md describes all of it with examples.
//
// # Planning
//
// The answer begins with the smallest set of objects that an index gives and that holds all that can fulfil
// the query. Other conditions on indexes are tested next, then labels, and then conditions on the body, for
// which objects are read. A query for which no index gives a set has to look at every object; it fails unless
// that is allowed. The plan never changes what is found.
//
// # Consistency
//
// A query looks at one snapshot of its source, with all its indexes, and the result carries its resource
// version and time. Pages are separate queries: an object that is there all the time, with the same value to
// sort by, comes exactly once.
//
// Results are ordered by namespace and name, or by an index, so that the same content gives the same result.
// Not is relative to all objects of the source.
//
// # Concurrency
//
// Queries and Queriers may be used from any number of goroutines. No lock of the source is held while a query
// runs. Objects are shared and must not be changed.
//
// # Memory
//
// A result holds on to the objects as they are kept and decodes them when they are read.
package query
