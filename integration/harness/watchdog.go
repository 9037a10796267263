package harness

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// recordPID writes a script that notes its process id in dir and becomes a program, and returns its path. envtest
// tells nobody which processes it has started.
func recordPID(dir, name, program string) (string, error) {
	path := filepath.Join(dir, name+".sh")
	script := fmt.Sprintf("#!/bin/sh\necho $$ >'%s'\nexec '%s' \"$@\"\n", filepath.Join(dir, name+".pid"), program)
	return path, os.WriteFile(path, []byte(script), 0o700)
}

// recordedPID is what the script of recordPID has noted.
func recordedPID(dir, name string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dir, name+".pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// forgetPID is for a program that has ended: its id may become another's.
func forgetPID(dir, name string) error { return os.Remove(filepath.Join(dir, name+".pid")) }

// startWatchdog kills the processes whose ids are noted in dir when this process ends without having closed the
// watchdog. envtest's processes outlive the one that started them.
func startWatchdog(dir string) (io.Closer, error) {
	// Close writes a line. Without one, reading fails at the end of the pipe, of which this process has the other end.
	script := `read -r line && exit; for f in "$1"/*.pid; do kill -9 "$(cat "$f")"; done; rm -rf "$1"`
	command := exec.Command("sh", "-c", script, "watchdog", dir)
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the watchdog of the control plane: %w", err)
	}
	return &watchdog{stdin: stdin, command: command}, nil
}

type watchdog struct {
	stdin   io.WriteCloser
	command *exec.Cmd
}

// Close implements io.Closer.
func (w *watchdog) Close() error {
	_, err := io.WriteString(w.stdin, "\n")
	return errors.Join(err, w.command.Wait())
}
