// Package answers compares the answers of a server with those of a real API server, for thousands of requests
// about the types and objects of testdata.
//
// Suites returns the requests. Compare sends each request to both servers. It fails if an answer differs,
// unless Server.IntendedDifferences lists the difference.
package answers
