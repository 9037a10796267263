// Package filler writes synthetic custom resources, in quantities
// that a test or a benchmark needs.
//
// Objects are a function of seed and index alone: name, namespace, uid,
// timestamps and content are the same in every run and on every machine. There
// is a hand-written generator for cert-manager's Certificates; any other
// custom resource gets content made up from its CRD's schema.
//
// The fast way in is etcd ([Fill] with an etcd client). One object of each
// shape goes through the API server first; what the server stored for it,
// managedFields and defaults included, is the template for all others, so that
// clients cannot tell them from objects created through the API.
package filler
