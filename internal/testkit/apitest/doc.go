// Package apitest runs a readapi server for unit tests, spoken to over HTTP by real clients: discovery of the types it
// was made with, their objects with all that readapi reads and writes, and faults on demand.
//
//	server := apitest.New(t, apitest.Type{GVR: widgets, Kind: "Widget", Namespaced: true})
//	server.Create(t, widgets, widget)
//	server.Break(apitest.Fault{Path: "/apis/example.com/v1/widgets", Status: http.StatusForbidden})
package apitest
