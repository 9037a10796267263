// Package server is crdcached: one cache of a cluster that many users read, each what they may read in the
// cluster.
//
// # Usage
//
//	options := server.NewOptions()
//	options.AddFlags(flags)
//	err := options.Complete(flags) // after the flags were parsed
//	s, err := server.New(options)
//	err = s.Run(ctx)
//
// # What it stands on
//
// The generic server of k8s.io/apiserver authenticates (tokens by TokenReview, certificates by the client
// authorities of the cluster), asks the API server by SubjectAccessReview whether the user may, audits,
// limits what is in flight, and shuts down; package readapi/live answers. A request gets there only once it
// has been authorized: resources by verb, group, resource, subresource, namespace, name and selectors, all
// else by its path. A query on /query is authorized as a list or watch of the type that it is on.
//
// # What it refuses
//
// Types that it does not cache (421), every verb that writes (405), requests of which the authorization and
// the cache read something else (400), addresses of more than 128 KB (414), and users beyond their limits
// (429, with Retry-After).
//
// # Concurrency
//
// A Server is run once.
package server
