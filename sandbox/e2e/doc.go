// Package e2e tests the sandbox as its users meet it: the built binary, real
// processes, a real API server. CRDCACHE_SANDBOX_BIN names a binary to test;
// without it the tests build all programs.
package e2e
