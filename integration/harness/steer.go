package harness

import (
	"context"
	"testing"
	"time"
)

// KillAPIServer ends the API server with SIGKILL: connections break, and new ones are refused until
// RestartAPIServer, which happens at the end of the test at the latest.
func KillAPIServer(t testing.TB) {
	t.Helper()
	p := plane(t)
	steer(t, p.killAPIServer)
	t.Cleanup(func() {
		if !ready(t) {
			steer(t, p.restartAPIServer)
		}
	})
}

// RestartAPIServer ends the API server, if it runs, starts it at the same address and returns when it is
// ready. Its watch caches are empty then.
func RestartAPIServer(t testing.TB) {
	t.Helper()
	steer(t, plane(t).restartAPIServer)
}

// KillEtcd ends etcd with SIGKILL. RestartEtcd has to follow; it brings the data back.
func KillEtcd(t testing.TB) {
	t.Helper()
	steer(t, plane(t).killEtcd)
}

// RestartEtcd restarts etcd with its data, and returns when it and the API server, if that runs, are ready.
func RestartEtcd(t testing.TB) {
	t.Helper()
	steer(t, plane(t).restartEtcd)
}

// RestartAPIServerWithin is RestartAPIServer where so much else happens that it may take as long as that for
// the server to be ready.
func RestartAPIServerWithin(t testing.TB, patience time.Duration) {
	t.Helper()
	within(t, patience, plane(t).restartAPIServer)
}

// RestartEtcdWithin is RestartEtcd in the same way.
func RestartEtcdWithin(t testing.TB, patience time.Duration) {
	t.Helper()
	within(t, patience, plane(t).restartEtcd)
}

// within does not mind that f loses its patience, as long as the API server is ready in the end.
func within(t testing.TB, patience time.Duration, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if failure := f(ctx); failure != nil {
		err := eventually(ctx, func(context.Context) error {
			if !ready(t) {
				return failure
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Compact discards etcd's history, so that lists at old resource versions and old continue tokens expire.
// Watches expire only when the API server has been restarted too, because its watch caches know more.
func Compact(t testing.TB) {
	t.Helper()
	steer(t, plane(t).compact)
}

// steer has its own deadline: in a cleanup the test's context has ended already.
func steer(t testing.TB, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := f(ctx); err != nil {
		t.Fatal(err)
	}
}
