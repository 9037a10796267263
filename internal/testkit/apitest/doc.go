// Package apitest runs a testcluster for unit tests behind a port, spoken to over HTTP by real clients: with
// nothing but the types it was made with, faults on demand, and a record of all requests.
//
//	server := apitest.New(t, apitest.Type{GVR: widgets, Kind: "Widget", Namespaced: true})
//	server.Create(t, widgets, widget)
//	server.Break(apitest.Fault{Path: "/apis/example.com/v1/widgets", Status: http.StatusForbidden})
package apitest
