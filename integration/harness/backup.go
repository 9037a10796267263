package harness

import (
	"os"
	"path/filepath"
	"testing"
)

// BackUpEtcd restarts etcd and copies its data. restore kills the API server and etcd, restores the copy and
// starts both again. All later changes are lost, and resource versions decrease.
func BackUpEtcd(t testing.TB) (restore func()) {
	t.Helper()
	p := plane(t)
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
