// Package server implements crdcached: one cache of a cluster for many users, with the access rights of each
// user in the cluster.
//
// # Usage
//
//	options := server.NewOptions()
//	options.AddFlags(flags)
//	err := options.Complete(flags) // after the flags were parsed
//	s, err := server.New(options)
//	err = s.Run(ctx)
//
// # Design
//
// The generic server of k8s.io/apiserver authenticates (tokens with TokenReview, certificates with the client
// CAs of the cluster), authorizes with SubjectAccessReview, audits, limits concurrent requests, and shuts
// down. Package readapi/live answers requests after they were authorized: resources by verb, group, resource,
// subresource, namespace, name and selectors, all else by path. A query under /query is authorized as a list
// or watch of its type.
//
// # Config
//
// The files of a config select types and indexes. With CustomResourceConfig, the objects of the custom
// resources CachedTypes and IndexConfig add to them while the server runs. Their status has their errors.
//
// # Rejected requests
//
//   - for types that it does not cache: 421
//   - with any verb that writes: 405
//   - that the authorization and the cache parse differently: 400
//   - with a URL of more than 128 KB: 414
//   - above the limits of the user: 429 with Retry-After
//
// # Concurrency
//
// A Server runs once.
package server
