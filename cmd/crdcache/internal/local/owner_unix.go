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

// lock takes the right to serve for as long as the process lasts; false where another process has it.
func lock(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// alone keeps a program from ending with the terminal.
func alone(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
