package harness

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Eventually polls until check returns nil. If that takes too long, it fails the test with the last error.
func Eventually(t testing.TB, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	must(t, eventually(ctx, check))
}

func eventually(ctx context.Context, check func(context.Context) error) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

func isAPIServerReady(t testing.TB) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	client, err := rest.UnversionedRESTClientFor(unversioned(Config(t)))
	must(t, err)
	return client.Get().AbsPath("/readyz").Do(ctx).Error() == nil
}

// unversioned prepares a configuration for requests by path.
func unversioned(config *rest.Config) *rest.Config {
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return config
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
