// Package server implements crdcached: one cache of a cluster for many users, with the access rights of each
// user in the cluster.
//
// # Usage
//
//	options := server.NewOptions()
//	options.AddFlags(flags)
//	err := options.Complete(flags) // after the flags were parsed
//	s, err := server.New(ctx, options)
//	err = s.Run(ctx)
//
// # Design
//
// The generic server of k8s.io/apiserver authenticates, authorizes, audits, limits concurrent requests, and
// shuts down. It authenticates tokens with TokenReview and certificates with the client CAs of the cluster.
// It authorizes with SubjectAccessReview: requests for resources by verb, group, resource, subresource,
// namespace, name and selectors, and other requests by path. A query under /query is authorized as a list or
// watch of its type. Then package serving/readapi/live answers the request.
//
// # Config
//
// The files of a config select types, their settings and indexes. Changed index configs are applied while the
// server runs.
//
// # Rejected requests
//
//   - 421: the type is not cached
//   - 405: the verb writes
//   - 400: the authorization and the cache parse the request differently
//   - 414: the URL has more than 128 KB
//   - 429 with Retry-After: the user is above a limit
//
// # Concurrency
//
// A Server runs once.
package server
