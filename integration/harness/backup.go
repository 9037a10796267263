package harness

import (
	"os"
	"path/filepath"
	"testing"
)

// BackUpEtcd copies the data of etcd, which is restarted for that. restore kills the API server and etcd,
// puts the copy back and starts them again: the resource version goes back, and all later changes are lost.
func BackUpEtcd(t testing.TB) (restore func()) {
	t.Helper()
	p := plane(t)
	backup := filepath.Join(t.TempDir(), "etcd")
	KillEtcd(t)
	copyFolder(t, backup, p.etcdData())
	RestartEtcd(t)
	return func() {
		t.Helper()
		steer(t, p.killAPIServer)
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
	if err := os.Chmod(to, 0o700); err != nil { // etcd wants nobody else to read it
		t.Fatal(err)
	}
}
