package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// launcherScript runs a component's program. envtest requests the help text to detect flags of unsupported
// versions. The script prints none, which saves a run of the program. The script removes ETCD_ variables,
// because etcd would use them as configuration. If the supervisor dies before the process ID is written, the
// script ends itself. The watchdog kills all other processes.
const launcherScript = `#!/bin/sh
if [ "$1" = --help ]; then exit; fi
unset $(env | sed -n 's/^\(ETCD_[A-Z_]*\)=.*/\1/p')
echo $$ >%s
kill -0 %d || exit 1
exec %s "$@"
`

// writeLauncher writes the script that envtest starts as a component, and returns its path. The program is in
// the folder binaries. If binaries is empty, it is in the folder of this program.
func writeLauncher(dir directory, component, binaries, program string) (string, error) {
	if binaries == "" {
		thisProgram, err := os.Executable()
		if err != nil {
			return "", err
		}
		binaries = filepath.Dir(thisProgram)
	}
	path, err := filepath.Abs(filepath.Join(binaries, program))
	if err != nil {
		return "", err
	}
	if _, err := exec.LookPath(path); err != nil {
		return "", fmt.Errorf("the folder of binaries must contain etcd and kube-apiserver: %w", err)
	}
	launcher := dir.path(component + ".sh")
	if err := os.Remove(launcher); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	script := fmt.Sprintf(launcherScript, quoteShell(dir.pidPath(component)), os.Getpid(), quoteShell(path))
	return launcher, os.WriteFile(launcher, []byte(script), 0o700)
}

func quoteShell(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// watchdogScript waits for a line. If its input ends without a line, the supervisor has died. Then the script
// kills the processes of the sandbox and removes the folder in $2, if any. It removes the folder repeatedly,
// because a component may still write to it. The command of "sandbox exec" gets SIGTERM, so that it can clean
// up.
const watchdogScript = `read -r _ && exit
for f in "$1"/*.pid; do
  case $f in
  */command.pid) kill -TERM "$(cat "$f")" ;;
  *) kill -KILL "$(cat "$f")" ;;
  esac
done
if [ -n "$2" ]; then
  for _ in 1 2 3 4 5 6 7 8 9; do rm -rf "$2" && break; sleep 0.1; done
fi
`

// watchdog is a process that ends the components of a dead supervisor. It holds the lock of the sandbox's
// directory until they have ended.
type watchdog struct {
	command *exec.Cmd
	stdin   io.WriteCloser
}

func startWatchdog(dir directory, lock *fileLock, ephemeral bool) (*watchdog, error) {
	removedFolder := ""
	if ephemeral {
		removedFolder = string(dir)
	}
	command := exec.Command("sh", "-c", watchdogScript, "watchdog", string(dir), removedFolder)
	command.Dir = "/"
	command.ExtraFiles = []*os.File{lock.file}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // protects it from Ctrl-C
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the watchdog: %w", err)
	}
	return &watchdog{command: command, stdin: stdin}, nil
}

// dismiss ends the watchdog without any effect.
func (w *watchdog) dismiss() {
	_, _ = w.stdin.Write([]byte("\n"))
	_ = w.command.Wait()
}
