package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// background is a running binary.
type background struct {
	cmd    *exec.Cmd
	stdout *bufio.Reader
	stderr *bytes.Buffer
}

func start(t *testing.T, args ...string) *background {
	t.Helper()
	b := &background{cmd: exec.Command(binary, args...), stderr: &bytes.Buffer{}}
	b.cmd.Stderr = b.stderr
	// Unlike StdoutPipe, this pipe can be read after Wait.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b.cmd.Stdout, b.stdout = w, bufio.NewReader(r)
	err = b.cmd.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = b.cmd.Process.Kill()
		r.Close()
	})
	return b
}

// line reads the next line of output.
func (b *background) line(t *testing.T) string {
	t.Helper()
	line, err := b.stdout.ReadString('\n')
	if err != nil {
		t.Fatalf("no more output: %v\n%s", err, b.stderr)
	}
	return strings.TrimSuffix(line, "\n")
}

func (b *background) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := b.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// wait returns the exit code, or -1 if a signal ended the process.
func (b *background) wait(t *testing.T) int {
	t.Helper()
	var exit *exec.ExitError
	if err := b.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return b.cmd.ProcessState.ExitCode()
}

func TestUpWaitStopsEverythingWhenInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, "up", "--wait", "--dir", dir)
	if got, want := b.line(t), filepath.Join(dir, "kubeconfig"); got != want {
		t.Fatalf("printed %q, want %q", got, want)
	}
	running := status(t, dir)
	b.signal(t, syscall.SIGINT)
	if code := b.wait(t); code != 0 {
		t.Errorf("exit code %d, want 0\n%s", code, b.stderr)
	}
	assertNothingLeft(t, running)
}

func TestUpInterruptedWhileStarting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := start(t, "up", "--dir", dir)
	apiServerLog := filepath.Join(dir, "apiserver.log")
	eventually(t, "the API server starts", func() bool {
		_, err := os.Stat(apiServerLog)
		return err == nil
	})
	b.signal(t, syscall.SIGTERM)
	if code := b.wait(t); code != 1 || !strings.Contains(b.stderr.String(), "interrupted") {
		t.Errorf("exit code %d, stderr %q", code, b.stderr)
	}
	// The lock is free only after the supervisor has stopped everything.
	if r := runSandbox(t, "status", "--dir", dir); r.code != 1 ||
		!strings.Contains(r.stderr, "no sandbox is running") {
		t.Errorf("something is left: %+v", r)
	}
}

func TestExecExitCode(t *testing.T) {
	tests := map[string]struct {
		args []string
		code int
	}{
		"the command's own":  {[]string{"--", "sh", "-c", `test -s "$KUBECONFIG" && exit 7`}, 7},
		"no such command":    {[]string{"--", "crdcache-no-such-command"}, 127},
		"the sandbox failed": {[]string{"--load", "testdata/nothing", "--", "true"}, 125},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if r := runSandbox(t, append([]string{"exec"}, test.args...)...); r.code != test.code {
				t.Errorf("want exit code %d, got %+v", test.code, r)
			}
		})
	}
}

func TestExecPassesSignalsOn(t *testing.T) {
	t.Parallel()
	b := start(t, "exec", "--", "sh", "-c",
		`trap 'exit 9' TERM; echo $SANDBOX_DIR; while :; do sleep 0.1; done`)
	dir := b.line(t)
	running := status(t, dir)
	b.signal(t, syscall.SIGTERM)
	if code := b.wait(t); code != 9 {
		t.Errorf("exit code %d, want the command's 9\n%s", code, b.stderr)
	}
	assertNothingLeft(t, running)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary directory is still there: %v", err)
	}
}

func TestExecKilledLeavesNothing(t *testing.T) {
	t.Parallel()
	b := start(t, "exec", "--", "sh", "-c", `echo $SANDBOX_DIR; exec sleep 600`)
	dir := b.line(t)
	running := status(t, dir)
	b.signal(t, syscall.SIGKILL)
	b.wait(t)
	assertNothingLeft(t, running)
	eventually(t, "the temporary directory is deleted", func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist)
	})
	// The command holds the other end of the pipe, so the pipe ends with the command.
	if _, err := io.ReadAll(b.stdout); err != nil {
		t.Error(err)
	}
}
