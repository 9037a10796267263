package harness

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// control executes a command of "sandbox control" on the shared control plane.
func control(t testing.TB, command string) {
	t.Helper()
	must(t, requireControlPlane(t).Do(command))
}

// KillAPIServer kills the API server. Connections break, and new ones are refused until RestartAPIServer is
// called. The end of the test restarts it too.
func KillAPIServer(t testing.TB) {
	t.Helper()
	control(t, "kill apiserver")
	t.Cleanup(func() {
		if !isAPIServerReady(t) {
			RestartAPIServer(t)
		}
	})
}

// RestartAPIServer restarts the API server at the same address, with empty watch caches, and returns when it
// is ready.
func RestartAPIServer(t testing.TB) {
	t.Helper()
	control(t, "restart apiserver")
}

// KillEtcd kills etcd. The test must call RestartEtcd, which restores the data.
func KillEtcd(t testing.TB) {
	t.Helper()
	control(t, "kill etcd")
}

// RestartEtcd restarts etcd with its data. It returns when etcd and the API server, if it runs, are ready.
func RestartEtcd(t testing.TB) {
	t.Helper()
	control(t, "restart etcd")
}

// RestartWithin restarts "apiserver" or "etcd" of a busy control plane. It ignores a failure if the API
// server is ready before the deadline.
func RestartWithin(t testing.TB, component string, patience time.Duration) {
	t.Helper()
	failure := requireControlPlane(t).Do("restart " + component)
	if failure == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := eventually(ctx, func(context.Context) error {
		if !isAPIServerReady(t) {
			return failure
		}
		return nil
	})
	must(t, err)
}

// Compact discards the history of etcd. Lists at old resource versions and old continue tokens then expire.
// Watches expire only after a restart of the API server, because its watch caches keep more history.
func Compact(t testing.TB) {
	t.Helper()
	control(t, "compact")
}

// APIServerPID returns the process ID of the running API server.
func APIServerPID(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(requireControlPlane(t).Dir, "apiserver.pid"))
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must(t, err)
	return pid
}
