// Package faults injects faults into the answers of an API server, for tests of its clients.
//
// # Usage
//
// An Injector wraps any handler, such as a proxy. testcluster.Cluster.Faults returns the injector of a
// cluster. Faults can be added and removed at any time:
//
//	injector := faults.New(handler)
//	remove := injector.Add(faults.Fault{
//		Match:  faults.Match{Verbs: []string{"watch"}, Resource: "widgets"},
//		Times:  2,
//		Effect: faults.Cut(3, 10), // in the middle of the fourth event
//	})
//
// # Concurrency
//
// An Injector is safe for concurrent use. A fault applies to requests that arrive after Add.
package faults
