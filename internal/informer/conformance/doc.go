// Package conformance runs scenarios against client-go's implementation of cache.SharedIndexInformer and
// others, and compares the traces of their handlers and the content of their stores.
//
// # Usage
//
//	server := apitest.New(t, apitest.ConfigMaps, apitest.Namespaces)
//	conformance.Run(t, server.Config(), conformance.Subject{Name: "mine", New: newInformer})
//
// The scenarios only need ConfigMaps and Namespaces, and break connections on the client's side. They
// therefore run on any API server. test/integration/conformance compares the informers in outages of a
// server.
//
// # Traces
//
// A trace has the events of one handler for each object, in order. The order between objects is not part of
// the contract. Each run of a scenario has its own namespace. If a subject differs from client-go by
// intention, the scenario has the reason and the expected trace.
package conformance
