// Package localserver implements the local cache server of one user: its socket, its identity (cluster and
// user), and the client for commands.
package localserver
