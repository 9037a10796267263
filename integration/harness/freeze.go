package harness

import (
	"sync"
	"syscall"
	"testing"
)

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
