// Package conformance runs one set of scenarios against two implementations of cache.SharedIndexInformer, the
// one of client-go and the one under test, and compares what their handlers and readers see.
//
// # Usage
//
//	server := apitest.New(t, apitest.ConfigMaps, apitest.Namespaces)
//	conformance.Run(t, server.Config(), conformance.Subject{Name: "mine", New: newInformer})
//
// The scenarios need nothing but ConfigMaps and Namespaces, and break the connection on the client's side, so
// that they run on any API server, a real one included. RunOutages
// needs a server that can be killed, and lets all informers live through one outage at a time.
//
// # Traces
//
// A trace is what one handler saw of each object, in order: the order between objects is not part of the
// contract. Two runs of a scenario talk to the same server in namespaces of their own. A scenario whose
// subject is meant to differ from client-go says why and what it expects instead.
package conformance
