package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// process runs the program with arguments and without the machine's configuration.
type process struct {
	*exec.Cmd
	errOut bytes.Buffer
	stdout *os.File // read end of the pipe; nil until pipeStdout
}

func newProcess(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // longer than needed
	t.Cleanup(cancel)
	p := &process{Cmd: exec.CommandContext(ctx, os.Args[0], args...)}
	p.Env = append(os.Environ(), programEnv+"=1", "KUBECONFIG=/none", "HOME="+t.TempDir())
	p.Stderr = &p.errOut
	return p
}

// pipeStdout starts the program with stdout connected to a pipe.
func (p *process) pipeStdout(t *testing.T) {
	t.Helper()
	reader, writer, err := os.Pipe()
	must(t, err)
	p.stdout, p.Stdout = reader, writer
	p.start(t)
	_ = writer.Close() // the program has its own copy
	t.Cleanup(func() { _ = reader.Close() })
}

func (p *process) start(t *testing.T) {
	t.Helper()
	must(t, p.Start())
}

// firstLine waits for the first line of output.
func (p *process) firstLine(t *testing.T) {
	t.Helper()
	if _, err := bufio.NewReaderSize(p.stdout, 16).ReadSlice('\n'); err == io.EOF {
		t.Error("the program ended without output")
	}
}

func (p *process) signal(t *testing.T, signal os.Signal) {
	t.Helper()
	must(t, p.Process.Signal(signal))
}

// exitCode waits until the program ends. It returns the exit code, or the shell's code for a signal.
func (p *process) exitCode() int {
	_ = p.Wait() // the test checks the exit code
	if status := p.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.ProcessState.ExitCode()
}

// manyGizmosFile writes a file of objects that fill any pipe in every format.
func manyGizmosFile(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for i := range 1500 {
		fmt.Fprintf(
			&text, "---\napiVersion: example.com/v1\nkind: Gizmo\nmetadata: {name: %s%d, namespace: web}\nspec: {color: %s}\n", strings.Repeat("n", 200), i, strings.Repeat("c", 200))
	}
	return writeTempFile(t, "gizmos.yaml", text.String())
}

func newFIFO(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo.yaml")
	must(t, syscall.Mkfifo(path, 0o600))
	return path
}

// awaitReader returns when the program has opened a pipe. Nothing is written to the pipe.
func awaitReader(t *testing.T, path string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0) // blocks until the program opens the pipe
	must(t, err)
	t.Cleanup(func() { _ = file.Close() })
}

// TestSignals checks that the first SIGINT or SIGTERM ends every command with 130 and one message.
func TestSignals(t *testing.T) {
	t.Parallel()
	gizmosFile := manyGizmosFile(t)
	phases := map[string]func(t *testing.T) *process{
		"watching": func(t *testing.T) *process {
			p := newProcess(t, "watch", "gizmos", "-o", "name", "--from", writeTempFile(t, "a.yaml", gizmoObject),
				"--quiet")
			p.pipeStdout(t)
			p.firstLine(t)
			return p
		},
		"connecting": func(t *testing.T) *process {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			must(t, err)
			t.Cleanup(func() { _ = listener.Close() })
			p := newProcess(t, "dump", "gizmos", "-s", "https://"+listener.Addr().String())
			p.start(t)
			connection, err := listener.Accept()
			must(t, err)
			t.Cleanup(func() { _ = connection.Close() })
			return p
		},
		"printing": func(t *testing.T) *process {
			p := newProcess(t, "dump", "gizmos", "-A", "--quiet", "-o", "json", "--from", gizmosFile)
			p.pipeStdout(t)
			p.firstLine(t)
			return p
		},
	}
	for _, path := range []string{"/apis", gizmosPath} {
		phases["awaiting "+path] = func(t *testing.T) *process {
			server := newCluster(t)
			server.AddFaults(apitest.Fault{Path: path})
			p := newProcess(t, "dump", "gizmos", "-A", "-s", server.URL)
			p.start(t)
			server.AwaitRequest(t, path)
			return p
		}
	}
	pipe := func(args ...string) func(t *testing.T) *process {
		return func(t *testing.T) *process {
			path := newFIFO(t)
			p := newProcess(t, append(args[:len(args):len(args)], path)...)
			p.start(t)
			awaitReader(t, path)
			return p
		}
	}
	phases["reading for dump"] = pipe("dump", "gizmos", "--from")
	phases["reading for suggest"] = pipe("suggest", "gizmos", "--crds")
	phases["reading a config"] = pipe("validate")
	for name, begin := range phases {
		for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
			t.Run(name+"/"+signal.String(), func(t *testing.T) {
				t.Parallel()
				p := begin(t)
				p.signal(t, signal)
				if code := p.exitCode(); code != cli.ExitInterrupted ||
					p.errOut.String() != "error: interrupted\n" {
					t.Errorf("exit code %d, want %d; stderr %q", code, cli.ExitInterrupted, p.errOut.String())
				}
			})
		}
	}
}

// TestSecondSignal checks that a second interrupt ends a program that blocks on output.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	file := manyGizmosFile(t)
	for {
		p := newProcess(t, "dump", "gizmos", "-A", "--quiet", "-o", "json", "--from", file)
		p.pipeStdout(t)
		p.firstLine(t)
		code := p.interruptUntilEnd()
		if code == cli.ExitInterrupted && p.ProcessState.Exited() {
			continue // the first signal came before the pipe was full
		}
		if code != 128+int(syscall.SIGINT) || p.errOut.Len() > 0 {
			t.Errorf("the program ended with %v, stderr %q, want SIGINT", p.ProcessState, p.errOut.String())
		}
		return
	}
}

// interruptUntilEnd interrupts the program repeatedly, and returns its exit code.
func (p *process) interruptUntilEnd() int {
	ended := make(chan int)
	go func() { ended <- p.exitCode() }() // ends with the signals
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		_ = p.Process.Signal(os.Interrupt) // the program may have ended
		select {
		case code := <-ended:
			return code
		case <-ticker.C:
		}
	}
}

// TestClosedPipe checks that a closed pipe ends the program silently, even without another event.
func TestClosedPipe(t *testing.T) {
	t.Parallel()
	file := manyGizmosFile(t)
	few := writeTempFile(t, "few.yaml", "apiVersion: example.com/v1\nkind: Gizmo\nmetadata: {name: a, namespace: web}\n")
	verbs := [][]string{{"query", "gizmos", "-A", "--quiet", "--keys-only", "--from", file}}
	for _, verb := range []string{"dump -w", "watch", "watch -o json"} {
		verbs = append(verbs, append(strings.Fields(verb), "gizmos", "-A", "--quiet", "--from", few))
	}
	for _, format := range hostileFormats {
		verbs = append(verbs, []string{"dump", "gizmos", "-A", "--quiet", "--from", file, "-o", format})
	}
	for _, args := range verbs {
		t.Run(args[0]+" "+filepath.Base(args[len(args)-1]), func(t *testing.T) {
			t.Parallel()
			p := newProcess(t, args...)
			p.pipeStdout(t)
			p.firstLine(t)
			_ = p.stdout.Close()
			if code := p.exitCode(); code != 128+int(syscall.SIGPIPE) || p.errOut.Len() > 0 {
				t.Errorf("exit code %d, stderr %q, want SIGPIPE and no stderr", code, p.errOut.String())
			}
		})
	}
}

// TestProcessFullDisk verifies that write errors of stdout and stderr are reported.
func TestProcessFullDisk(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	must(t, err)
	t.Cleanup(func() { _ = full.Close() })
	file := writeTempFile(t, "a.yaml", gizmoObject)
	verbs := [][]string{{"--help"}, {"version"}, {"resources", "--from", file}}
	for _, format := range hostileFormats {
		verbs = append(verbs, []string{"dump", "gizmos", "-A", "--quiet", "--from", file, "-o", format})
	}
	for _, args := range verbs {
		t.Run("stdout/"+args[0]+" "+args[len(args)-1], func(t *testing.T) {
			t.Parallel()
			p := newProcess(t, args...)
			p.Stdout = full
			p.start(t)
			if code := p.exitCode(); code != cli.ExitFailed || !strings.HasSuffix(p.errOut.String(),
				"no space left on device\n") {
				t.Errorf("exit code %d, want %d; stderr %q", code, cli.ExitFailed, p.errOut.String())
			}
		})
	}
	for code, args := range map[int][]string{cli.ExitOK: {"dump", "gizmos", "-A", "--from", file, "-o", "name"},
		cli.ExitUsage: {"dump"}} {
		t.Run("stderr/"+args[len(args)-1], func(t *testing.T) {
			t.Parallel()
			p := newProcess(t, args...)
			var out bytes.Buffer
			p.Stdout, p.Stderr = &out, full
			p.start(t)
			if got := p.exitCode(); got != code || (out.Len() > 0) != (code == cli.ExitOK) {
				t.Errorf("exit code %d, stdout %q, want %d", got, out.String(), code)
			}
		})
	}
}

// TestEnvironment checks runs without a home directory, and errors for an unusable home or kubeconfig.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	server := newCluster(t)
	server.Create(t, gizmos, newObject("Gizmo", "web", "a", nil))
	dump := []string{"dump", "gizmos", "-A", "-o", "name"}
	const gizmo = "gizmo.example.com/a\n"
	for name, tt := range map[string]struct {
		env, more []string
		code      int
		out, want string
	}{
		"no home": {nil, []string{"-s", server.URL}, cli.ExitOK, gizmo, ""},
		"home is no folder": {[]string{"HOME=/dev/null/x", "KUBECONFIG=/none"}, []string{"-s", server.URL},
			cli.ExitFailed, "", "read the kubeconfig: stat /dev/null/x/.kube/config: not a directory"},
		"no kubeconfig": {[]string{"KUBECONFIG=/none"}, []string{"--request-timeout", "1s"}, cli.ExitFailed,
			"", "no kubeconfig was found: set --kubeconfig or KUBECONFIG"},
		"default server": {[]string{"KUBECONFIG=/none"}, []string{"--request-timeout", "1s",
			"-s", "http://127.0.0.1:1"}, cli.ExitFailed, "", "connect: connection refused\n"},
		"broken kubeconfig": {[]string{"KUBECONFIG=" + writeTempFile(t, "broken", "a: [")}, nil, cli.ExitFailed, "",
			"read the kubeconfig: error loading config file "},
		"folder": {[]string{"KUBECONFIG=" + t.TempDir()}, nil, cli.ExitFailed, "", "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProcess(t, append(dump[:len(dump):len(dump)], tt.more...)...)
			p.Env = append(tt.env, programEnv+"=1")
			var out bytes.Buffer
			p.Stdout = &out
			p.start(t)
			lines := min(len(tt.want), 1)
			if code := p.exitCode(); code != tt.code || out.String() != tt.out ||
				!strings.Contains(p.errOut.String(), tt.want) ||
				strings.Count(p.errOut.String(), "\n") != lines {
				t.Errorf("exit code %d, want %d; stdout %q, stderr %q", code, tt.code, out.String(),
					p.errOut.String())
			}
		})
	}
}
