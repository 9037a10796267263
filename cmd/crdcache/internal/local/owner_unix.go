//go:build unix

package local

import (
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// owned reports whether a file belongs to the user.
func owned(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

// lock acquires an exclusive lock for the life of the process, or returns false.
func lock(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// detach starts a program in a session of its own, so that it does not end with the terminal.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
