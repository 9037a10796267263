// Package query answers queries over a cache by the indexes of a config, and explains how.
//
// # Usage
//
// A [Querier] answers queries over a [Source]; [ForIndexer] makes a source of any client-go indexer. Queries
// are built by functions, or parsed from text by [Parse]:
//
//	querier := query.New(query.ForIndexer(informer.GetIndexer()), functions.Indexes()...)
//	q := query.And(query.Eq("issuer", "letsencrypt"), query.Less("expiry", "2026-03-01T00:00:00Z"))
//	q, err := query.Parse(`issuer=letsencrypt && expiry<2026-03-01T00:00:00Z`)
//	result, err := querier.Query(ctx, q, query.Options{SortBy: "expiry", Limit: 100})
//	for key, object := range result.All() { ... }
//
// [Querier.Values] returns the values of an index with the number of their objects. [Querier.Count] and
// [Querier.Keys] decode nothing. [Querier.Explain] returns the plan of a query. [Subscribe] sends events
// about the objects that match a query. docs/query.md describes the language with examples.
//
// # Planning
//
// The planner starts with the smallest set of candidates that an index can return. It tests them by the other
// indexed conditions first, then by labels, then by conditions on the body, which read the objects. A query
// that no index can narrow has to scan every object, and fails unless scans are allowed. The plan never
// changes the result.
//
// # Consistency
//
// A query reads one snapshot of its source with all indexes. The result carries the snapshot's resource
// version and time. Pages are separate queries: an object that exists throughout, with the same sort value,
// is returned exactly once.
//
// Results are ordered by namespace and name, or by an index, so that equal content gives equal results. Not
// is relative to all objects of the source.
//
// # Concurrency
//
// Queries and Queriers are safe for concurrent use. A running query holds no lock of the source. Objects are
// shared and must not be changed.
//
// # Memory
//
// A result references the objects as they are stored and decodes them when they are read.
package query
