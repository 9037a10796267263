package harness

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// KillAPIServer kills the API server. Connections break, and new ones are refused until RestartAPIServer is
// called. The end of the test restarts it too.
func KillAPIServer(t testing.TB) {
	t.Helper()
	p := requireControlPlane(t)
	withControlTimeout(t, p.killAPIServer)
	t.Cleanup(func() {
		if !isAPIServerReady(t) {
			withControlTimeout(t, p.restartAPIServer)
		}
	})
}

// RestartAPIServer restarts the API server at the same address, with empty watch caches, and returns when it
// is ready.
func RestartAPIServer(t testing.TB) {
	t.Helper()
	withControlTimeout(t, requireControlPlane(t).restartAPIServer)
}

// KillEtcd kills etcd. The test must call RestartEtcd, which restores the data.
func KillEtcd(t testing.TB) {
	t.Helper()
	withControlTimeout(t, requireControlPlane(t).killEtcd)
}

// RestartEtcd restarts etcd with its data. It returns when etcd and the API server, if it runs, are ready.
func RestartEtcd(t testing.TB) {
	t.Helper()
	withControlTimeout(t, requireControlPlane(t).restartEtcd)
}

// RestartAPIServerWithin is RestartAPIServer with a longer deadline, for busy servers.
func RestartAPIServerWithin(t testing.TB, patience time.Duration) {
	t.Helper()
	runWithTimeout(t, patience, requireControlPlane(t).restartAPIServer)
}

// RestartEtcdWithin is RestartEtcd with a longer deadline.
func RestartEtcdWithin(t testing.TB, patience time.Duration) {
	t.Helper()
	runWithTimeout(t, patience, requireControlPlane(t).restartEtcd)
}

// runWithTimeout ignores a timeout of f if the API server is ready in the end.
func runWithTimeout(t testing.TB, patience time.Duration, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if failure := f(ctx); failure != nil {
		err := eventually(ctx, func(context.Context) error {
			if !isAPIServerReady(t) {
				return failure
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Compact discards the history of etcd. Lists at old resource versions and old continue tokens then expire.
// Watches expire only after a restart of the API server, because its watch caches keep more history.
func Compact(t testing.TB) {
	t.Helper()
	withControlTimeout(t, requireControlPlane(t).compact)
}

// The deadline does not derive from the test's context, which has ended when cleanups run.
func withControlTimeout(t testing.TB, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	if err := f(ctx); err != nil {
		t.Fatal(err)
	}
}

// BackUpEtcd restarts etcd and copies its data. restore kills the API server and etcd, restores the copy and
// starts both again. All later changes are lost, and resource versions decrease.
func BackUpEtcd(t testing.TB) (restore func()) {
	t.Helper()
	p := requireControlPlane(t)
	backup := filepath.Join(t.TempDir(), "etcd")
	KillEtcd(t)
	copyFolder(t, backup, p.etcdData())
	RestartEtcd(t)
	return func() {
		t.Helper()
		withControlTimeout(t, p.killAPIServer)
		KillEtcd(t)
		if err := os.RemoveAll(p.etcdData()); err != nil {
			t.Fatal(err)
		}
		copyFolder(t, p.etcdData(), backup)
		RestartEtcd(t)
		RestartAPIServer(t)
	}
}

func copyFolder(t testing.TB, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(to, 0o700); err != nil { // etcd requires a private folder
		t.Fatal(err)
	}
}

// FreezeAPIServer suspends the API server. Its connections stay open. thaw resumes it, at the end of the test
// at the latest. Tests must not restart the server while it is suspended.
func FreezeAPIServer(t testing.TB) (thaw func()) {
	t.Helper()
	pid := APIServerPID(t)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	thaw = sync.OnceFunc(func() {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(thaw)
	return thaw
}
