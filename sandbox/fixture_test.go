package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// binary is the path of the sandbox under test. CRDCACHE_SANDBOX_BIN is the path of a built one. Without it,
// the tests build all programs.
var binary = os.Getenv("CRDCACHE_SANDBOX_BIN")

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

// runTests is a separate function so that its deferred calls run before the process exits.
func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sandbox-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if binary == "" {
		binary = filepath.Join(dir, "sandbox")
		build := exec.Command("./build.sh", dir)
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	// Etcd must ignore its configuration variables in the environment.
	if err := os.Setenv("ETCD_LISTEN_CLIENT_URLS", "http://127.0.0.1:1"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stopShared()
	return m.Run()
}

// patience is the timeout of every wait. It is long, so that no test fails on a busy machine.
const patience = 60 * time.Second

var (
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// result is the result of a finished command.
type result struct {
	stdout, stderr string
	code           int
}

// sandbox runs the binary to its end.
func sandbox(args ...string) (result, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}, err
}

// mustSandbox runs the binary and expects exit code 0.
func mustSandbox(t *testing.T, args ...string) {
	t.Helper()
	if r := runSandbox(t, args...); r.code != 0 {
		t.Fatalf("sandbox %s: exit code %d\n%s", strings.Join(args, " "), r.code, r.stderr)
	}
}

func runSandbox(t *testing.T, args ...string) result {
	t.Helper()
	r, err := sandbox(args...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// up starts a detached sandbox that ends with the test.
func up(t *testing.T, dir string, args ...string) {
	t.Helper()
	t.Cleanup(func() {
		if r, err := sandbox("down", "--dir", dir); err != nil || r.code != 0 {
			t.Errorf("down: %v %s", err, r.stderr)
		}
	})
	r := runSandbox(t, append([]string{"up", "--dir", dir}, args...)...)
	if got, want := strings.TrimSpace(r.stdout), directory(dir).kubeconfig(); got != want {
		t.Fatalf("up printed %q, want %q\n%s", got, want, r.stderr)
	}
}

// client returns a client for a context of a sandbox. An empty context is the current one.
func client(t *testing.T, dir, context string) dynamic.Interface {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: directory(dir).kubeconfig()},
		&clientcmd.ConfigOverrides{CurrentContext: context},
	).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually waits until check returns true.
func eventually(t *testing.T, condition string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !check(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for: %s", condition)
		}
	}
}

// hasEnded reports whether a process has ended. A zombie has ended, even if its parent has not noticed.
func hasEnded(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, found := strings.Cut(string(stat), ") ")
	return found && strings.HasPrefix(state, "Z")
}

// processes returns the supervisor, etcd and the API server of a running sandbox.
func processes(t *testing.T, dir string) [3]int {
	t.Helper()
	d := directory(dir)
	pids := [3]int{readPID(d.lockPath()), readPID(d.pidPath(etcdName)), readPID(d.pidPath(apiServerName))}
	for _, pid := range pids {
		if pid == 0 || hasEnded(pid) {
			t.Fatalf("not all processes run: %v", pids)
		}
	}
	return pids
}

// assertNothingLeft waits until every process of a sandbox has ended and its lock is free.
func assertNothingLeft(t *testing.T, dir string, pids [3]int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, fmt.Sprintf("process %d ends", pid), func() bool { return hasEnded(pid) })
	}
	assertUnlocked(t, dir)
}

func assertUnlocked(t *testing.T, dir string) {
	t.Helper()
	eventually(t, "the lock is free", func() bool {
		held, err := isLocked(directory(dir).lockPath())
		return !held && err == nil
	})
}

// shared is one sandbox for all tests that leave it unchanged. It has the types and objects of testdata.
var shared struct {
	once sync.Once
	dir  string
	err  error
}

func sharedDir(t *testing.T) string {
	t.Helper()
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "sandbox-shared-"); shared.err != nil {
			return
		}
		var r result
		r, shared.err = sandbox("up", "--dir", shared.dir, "--load", "testdata/objects", "--load", "testdata/crds")
		if shared.err == nil && r.code != 0 {
			shared.err = errors.New(r.stderr)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.dir
}

func sharedClient(t *testing.T) dynamic.Interface {
	t.Helper()
	return client(t, sharedDir(t), "")
}

func stopShared() {
	if shared.dir == "" {
		return
	}
	if r, err := sandbox("down", "--dir", shared.dir); err != nil || r.code != 0 {
		fmt.Fprintln(os.Stderr, "down:", err, r.stderr)
	}
	os.RemoveAll(shared.dir)
}

// background is a running binary.
type background struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
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
	if b.stdin, err = b.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
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
		t.Fatalf("the output ended: %v\n%s", err, b.stderr)
	}
	return strings.TrimSuffix(line, "\n")
}

// send sends a command to "sandbox control" and returns the error that it prints.
func (b *background) send(t *testing.T, command string) string {
	t.Helper()
	if _, err := fmt.Fprintln(b.stdin, command); err != nil {
		t.Fatal(err)
	}
	message, err := strconv.Unquote(b.line(t))
	if err != nil {
		t.Fatal(err)
	}
	return message
}

func (b *background) mustSend(t *testing.T, command string) {
	t.Helper()
	if message := b.send(t, command); message != "" {
		t.Fatalf("%s: %s", command, message)
	}
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
