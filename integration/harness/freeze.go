package harness

import (
	"sync"
	"syscall"
	"testing"
)

// FreezeAPIServer has the API server do nothing more, its connections stay open, until thaw is called, which
// happens at the end of the test at the latest. It must not be restarted meanwhile.
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
