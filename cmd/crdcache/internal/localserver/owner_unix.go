//go:build unix

package localserver

import (
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

func isOwnedByUser(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

// tryLock acquires an exclusive lock for the life of the process, or returns false.
func tryLock(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// detach puts a program into its own session, so that it outlives the terminal.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
