// Package answers compares what servers answer with what a real API server does, for thousands of requests
// about the types and objects of testdata.
//
// Suites has the requests. Compare sends each to the API server and to servers that claim to answer alike,
// and fails where one does not, unless its Server says that it differs there by design.
package answers
