package harness

import (
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Kubeconfig returns the path of a kubeconfig whose current user has all rights. Tests must not change the
// file.
func Kubeconfig(t testing.TB) string {
	t.Helper()
	return requireControlPlane(t).Kubeconfig
}

// Config returns a new configuration of a user with all rights, without a client-side rate limit.
func Config(t testing.TB) *rest.Config {
	t.Helper()
	return configFrom(t, Kubeconfig(t))
}

func configFrom(t testing.TB, path string) *rest.Config {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", path)
	must(t, err)
	c.QPS = -1
	// Deprecation warnings would clutter the output of tests.
	c.WarningHandler = rest.NoWarnings{}
	return c
}
