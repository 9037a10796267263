// Package filler writes large numbers of synthetic custom resources.
//
// A seed and an index determine an object: name, namespace, UID, timestamps and content are the same in every
// run and on every machine. A hand-written generator creates cert-manager's Certificates. The content of
// other custom resources is generated from their CRD's schema.
//
// With an etcd client, [Fill] writes to etcd, which is faster. It first creates one object of each shape
// through the API server. The stored form of that object, including managedFields and defaults, is the
// template for all others. So clients cannot distinguish them from objects created through the API.
package filler
