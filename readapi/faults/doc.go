// Package faults breaks the answers of an API server on purpose, for tests of what clients make of that.
//
// # Usage
//
// An Injector stands before any handler, a readapi one or a proxy. Faults are added and removed while it
// runs:
//
//	injector := faults.New(readapi.NewHandler(storage, readapi.HandlerOptions{}))
//	remove := injector.Add(faults.Fault{
//		Match:  faults.Match{Verbs: []string{"watch"}, Resource: "widgets"},
//		Times:  2,
//		Effect: faults.Cut(3, 10), // in the middle of the fourth event
//	})
//
// # Concurrency
//
// An Injector is safe for concurrent use. A request keeps the fault that it met when it came.
package faults
