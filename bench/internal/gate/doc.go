// Package gate stands between a client and the API server and can hold back what a watch brings, so that many events
// arrive at once: as fast as the client reads them, rather than as fast as somebody makes changes.
package gate
