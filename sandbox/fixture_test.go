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

// sandboxPath is the path of the binary under test. If CRDCACHE_SANDBOX_BIN is not set, the tests build all
// programs.
var sandboxPath = os.Getenv("CRDCACHE_SANDBOX_BIN")

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

// runTests is a separate function so that its deferred calls run before the process exits.
func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sandbox-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if sandboxPath == "" {
		sandboxPath = filepath.Join(dir, "sandbox")
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

// waitTimeout is long, so that no test fails on a busy machine.
const waitTimeout = 60 * time.Second

var (
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

type result struct {
	stdout, stderr string
	code           int
}

// runBinary runs the binary to its end.
func runBinary(args ...string) (result, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(sandboxPath, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}, err
}

// mustRun runs the binary and expects exit code 0.
func mustRun(t *testing.T, args ...string) {
	t.Helper()
	if r := runSandbox(t, args...); r.code != 0 {
		t.Fatalf("sandbox %s: exit code %d\n%s", strings.Join(args, " "), r.code, r.stderr)
	}
}

func runSandbox(t *testing.T, args ...string) result {
	t.Helper()
	r, err := runBinary(args...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// startSandbox starts a detached sandbox that ends with the test.
func startSandbox(t *testing.T, dir string, args ...string) {
	t.Helper()
	t.Cleanup(func() {
		if r, err := runBinary("down", "--dir", dir); err != nil || r.code != 0 {
			t.Errorf("down: %v %s", err, r.stderr)
		}
	})
	r := runSandbox(t, append([]string{"up", "--dir", dir}, args...)...)
	if got, want := strings.TrimSpace(r.stdout), directory(dir).kubeconfigPath(); got != want {
		t.Fatalf("up printed %q, want %q\n%s", got, want, r.stderr)
	}
}

// newClient returns a client for a context of a sandbox. An empty context is the current context.
func newClient(t *testing.T, dir, context string) dynamic.Interface {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: directory(dir).kubeconfigPath()},
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

func pollUntil(t *testing.T, condition string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitTimeout); !check(); time.Sleep(20 * time.Millisecond) {
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

// readPIDs returns the supervisor, etcd and the API server of a running sandbox.
func readPIDs(t *testing.T, dir string) [3]int {
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
		pollUntil(t, fmt.Sprintf("process %d ends", pid), func() bool { return hasEnded(pid) })
	}
	assertUnlocked(t, dir)
}

func assertUnlocked(t *testing.T, dir string) {
	t.Helper()
	pollUntil(t, "the lock is free", func() bool {
		held, err := isLocked(directory(dir).lockPath())
		return !held && err == nil
	})
}

// sharedSandbox is one sandbox for all tests that leave it unchanged. It has the types and objects of
// testdata.
var sharedSandbox struct {
	once sync.Once
	dir  string
	err  error
}

func sharedDir(t *testing.T) string {
	t.Helper()
	sharedSandbox.once.Do(func() {
		if sharedSandbox.dir, sharedSandbox.err = os.MkdirTemp("",
			"sandbox-shared-"); sharedSandbox.err != nil {
			return
		}
		var r result
		r, sharedSandbox.err = runBinary("up", "--dir", sharedSandbox.dir, "--load", "testdata/objects",
			"--load", "testdata/crds")
		if sharedSandbox.err == nil && r.code != 0 {
			sharedSandbox.err = errors.New(r.stderr)
		}
	})
	if sharedSandbox.err != nil {
		t.Fatal(sharedSandbox.err)
	}
	return sharedSandbox.dir
}

func sharedClient(t *testing.T) dynamic.Interface {
	t.Helper()
	return newClient(t, sharedDir(t), "")
}

func stopShared() {
	if sharedSandbox.dir == "" {
		return
	}
	if r, err := runBinary("down", "--dir", sharedSandbox.dir); err != nil || r.code != 0 {
		fmt.Fprintln(os.Stderr, "down:", err, r.stderr)
	}
	os.RemoveAll(sharedSandbox.dir)
}

// backgroundSandbox is a running binary.
type backgroundSandbox struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr *bytes.Buffer
}

func startInBackground(t *testing.T, args ...string) *backgroundSandbox {
	t.Helper()
	b := &backgroundSandbox{cmd: exec.Command(sandboxPath, args...), stderr: &bytes.Buffer{}}
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

func (b *backgroundSandbox) nextLine(t *testing.T) string {
	t.Helper()
	line, err := b.stdout.ReadString('\n')
	if err != nil {
		t.Fatalf("the output ended: %v\n%s", err, b.stderr)
	}
	return strings.TrimSuffix(line, "\n")
}

// send sends a command to "sandbox control" and returns the error that it prints.
func (b *backgroundSandbox) send(t *testing.T, command string) string {
	t.Helper()
	if _, err := fmt.Fprintln(b.stdin, command); err != nil {
		t.Fatal(err)
	}
	message, err := strconv.Unquote(b.nextLine(t))
	if err != nil {
		t.Fatal(err)
	}
	return message
}

func (b *backgroundSandbox) mustSend(t *testing.T, command string) {
	t.Helper()
	if message := b.send(t, command); message != "" {
		t.Fatalf("%s: %s", command, message)
	}
}

func (b *backgroundSandbox) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := b.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// awaitExitCode returns the exit code, or -1 if a signal ended the process.
func (b *backgroundSandbox) awaitExitCode(t *testing.T) int {
	t.Helper()
	var exit *exec.ExitError
	if err := b.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return b.cmd.ProcessState.ExitCode()
}
