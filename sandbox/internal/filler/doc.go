// Package filler writes large numbers of synthetic Certificates, the custom resources of cert-manager.
//
// A seed and an index determine an object: name, namespace, UID, timestamps and content are the same in every
// run and on every machine.
//
// With an etcd client, [Fill] writes to etcd, which is faster. It first creates one object of each shape
// through the API server. The stored form of that object, including managedFields and defaults, is the
// template for all others. Clients therefore cannot distinguish them from objects created through the API.
package filler
