package harness

import (
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Contexts of the kubeconfig.
const (
	// AdminContext has all rights. It is the current context.
	AdminContext = "sandbox-admin"
	// UnprivilegedContext has only the right to discover the API.
	UnprivilegedContext = "sandbox-unprivileged"
)

// Kubeconfig returns the path of a kubeconfig with AdminContext and UnprivilegedContext. Tests must not
// change the file.
func Kubeconfig(t testing.TB) string {
	t.Helper()
	return requireControlPlane(t).Kubeconfig
}

// Config returns a new configuration for AdminContext, without a client-side rate limit.
func Config(t testing.TB) *rest.Config {
	t.Helper()
	return config(t, AdminContext)
}

// UnprivilegedConfig returns a new configuration for UnprivilegedContext, without a client-side rate limit.
func UnprivilegedConfig(t testing.TB) *rest.Config {
	t.Helper()
	return config(t, UnprivilegedContext)
}

func config(t testing.TB, context string) *rest.Config {
	t.Helper()
	return configFrom(t, Kubeconfig(t), context)
}

func configFrom(t testing.TB, path, context string) *rest.Config {
	t.Helper()
	c, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: path},
		&clientcmd.ConfigOverrides{CurrentContext: context},
	).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	c.QPS = -1
	// Deprecation warnings would clutter the output of tests.
	c.WarningHandler = rest.NoWarnings{}
	return c
}
