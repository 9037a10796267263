package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/crdcache/crdcache/sandbox/internal/controlplane"
)

// patience limits every wait. It is long, so that a busy machine fails no test.
const patience = 60 * time.Second

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

// mustSandbox runs the binary, expects exit code 0 and returns stdout.
func mustSandbox(t *testing.T, args ...string) string {
	t.Helper()
	r := runSandbox(t, args...)
	if r.code != 0 {
		t.Fatalf("sandbox %s: exit code %d\n%s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r.stdout
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
		if t.Failed() {
			t.Logf("supervisor.log:\n%s", readFile(filepath.Join(dir, "supervisor.log")))
		}
	})
	out := mustSandbox(t, append([]string{"up", "--dir", dir}, args...)...)
	if got, want := strings.TrimSpace(out), filepath.Join(dir, "kubeconfig"); got != want {
		t.Fatalf("up printed %q, want %q", got, want)
	}
}

func readFile(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func status(t *testing.T, dir string) controlplane.Status {
	t.Helper()
	var s controlplane.Status
	if err := json.Unmarshal([]byte(mustSandbox(t, "status", "--json", "--dir", dir)), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// client returns a client for a context of a sandbox. An empty context is the current one.
func client(t *testing.T, dir, context string) dynamic.Interface {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: filepath.Join(dir, "kubeconfig")},
		&clientcmd.ConfigOverrides{CurrentContext: context, Context: clientcmdapi.Context{}},
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

// eventually waits until check returns true. If it never does, the message includes the clues.
func eventually(t *testing.T, what string, check func() bool, clues ...func() string) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !check() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			for _, clue := range clues {
				what += "\n" + clue()
			}
			t.Fatalf("gave up waiting: %s", what)
		}
	}
}

// hasEnded reports whether a process has ended. A zombie has ended, even if its parent has not noticed.
func hasEnded(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat := readFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, found := strings.Cut(stat, ") ")
	return found && strings.HasPrefix(state, "Z")
}

// assertNothingLeft waits until every process of a sandbox has ended.
func assertNothingLeft(t *testing.T, s controlplane.Status) {
	t.Helper()
	for _, pid := range []int{s.SupervisorPID, s.Etcd.PID, s.APIServer.PID} {
		if pid == 0 {
			t.Fatalf("status lacks a process id: %+v", s)
		}
		eventually(t, fmt.Sprintf("process %d ends", pid),
			func() bool { return hasEnded(pid) }, func() string { return describe(pid) })
	}
}

// describe describes a process and the wait states of its threads.
func describe(pid int) string {
	dir := fmt.Sprintf("/proc/%d/", pid)
	var b strings.Builder
	fmt.Fprintf(&b, "command: %s\n", strings.ReplaceAll(readFile(dir+"cmdline"), "\x00", " "))
	tasks, _ := filepath.Glob(dir + "task/*")
	for _, task := range tasks {
		fmt.Fprintf(&b, "thread in %s: %s", readFile(task+"/wchan"), readFile(task+"/stat"))
	}
	return b.String()
}

func refusesConnections(t *testing.T, rawURL string) bool {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
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
		r, shared.err = sandbox("up", "--dir", shared.dir, "--audit-log",
			"--load", "testdata/objects", "--load", "testdata/crds")
		if shared.err == nil && r.code != 0 {
			shared.err = errors.New(r.stderr)
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.dir
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
