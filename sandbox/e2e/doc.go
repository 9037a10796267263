// Package e2e tests the built binary with real processes and a real API server. CRDCACHE_SANDBOX_BIN is the
// path of the binary. Without it, the tests build all programs.
package e2e
