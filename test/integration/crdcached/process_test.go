package crdcached_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// Environment variables that make the test binary run as a server. envAddress is its address, envTypes the
// types to serve, each as "resource.version.group".
const (
	envAddress = "CRDCACHE_SERVING_ADDRESS"
	envTypes   = "CRDCACHE_SERVING_TYPES"
)

// server is a server that can be killed and restarted at the same address.
type server interface {
	config() *rest.Config
	kill()
	// restart returns when the caches serve all types.
	restart()
}

// process is a cache server in a separate process.
type process struct {
	*testing.T
	address string
	gvrs    []schema.GroupVersionResource
	command *exec.Cmd
	stdin   io.Closer // the process ends when stdin is closed, at the latest at the end of the test
}

// startProcess starts a server and returns when it serves the types.
func startProcess(t *testing.T, gvrs ...schema.GroupVersionResource) *process {
	t.Helper()
	p := &process{T: t, address: reserveAddress(t), gvrs: gvrs}
	p.restart()
	t.Cleanup(p.kill)
	return p
}

func (p *process) restart() {
	p.Helper()
	p.start()
	p.awaitSynced()
}

// reserveAddress returns an address on loopback that is bound until the test ends. Connections are refused
// unless a server listens.
func reserveAddress(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	syscall.CloseOnExec(socket)
	err = errors.Join(
		syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1), // as net.Listen does
		syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}),
	)
	bound, nameErr := syscall.Getsockname(socket)
	if err := errors.Join(err, nameErr); err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(bound.(*syscall.SockaddrInet4).Port))
}

func (p *process) config() *rest.Config { return &rest.Config{Host: "http://" + p.address, QPS: -1} }

func (p *process) start() {
	p.Helper()
	p.command = exec.Command(os.Args[0])
	var types []string
	for _, gvr := range p.gvrs {
		types = append(types, gvr.Resource+"."+gvr.Version+"."+gvr.Group)
	}
	p.command.Env = append(os.Environ(), "KUBECONFIG="+harness.Kubeconfig(p), envAddress+"="+p.address,
		envTypes+"="+strings.Join(types, ","))
	p.command.Stderr = os.Stderr
	stdin, err := p.command.StdinPipe()
	if err == nil {
		err = p.command.Start()
	}
	if err != nil {
		p.Fatal(err)
	}
	p.stdin = stdin
}

// awaitSynced waits until the caches serve all types.
func (p *process) awaitSynced() {
	p.Helper()
	harness.Eventually(p, func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/synced", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		return nil
	})
}

func (p *process) kill() {
	p.Helper()
	_ = p.command.Process.Kill()
	_ = p.command.Wait() // the process was killed
	_ = p.stdin.Close()
}

// serveUntilStdinEnds is the main function of the process. It ends with its standard input.
func serveUntilStdinEnds() int {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return printError(err)
	}
	config.QPS = -1
	var gvrs []schema.GroupVersionResource
	for _, text := range strings.Split(os.Getenv(envTypes), ",") {
		parts := strings.SplitN(text, ".", 3)
		gvrs = append(gvrs, schema.GroupVersionResource{Group: parts[2], Version: parts[1],
			Resource: parts[0]})
	}
	server, err := harness.StartCacheServer(config, gvrs...)
	if err != nil {
		return printError(err)
	}
	http.HandleFunc("/synced", func(w http.ResponseWriter, r *http.Request) {
		if err := server.WaitForSync(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	http.Handle("/", server)
	go func() { // ended by the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return printError(http.ListenAndServe(os.Getenv(envAddress), nil))
}

func printError(err error) int {
	fmt.Fprintln(os.Stderr, "serving:", err)
	return 1
}

// TestHelp checks that the flags of crdcached are printed before those of the generic server, and that an
// error names --help.
func TestHelp(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), harness.Crdcached(t), "--help").CombinedOutput()
	rest := string(out)
	for _, text := range []string{"crdcached caches types", "Crdcached flags:", "--config string",
		"Secure serving flags:", "--secure-port", "Audit flags:", "--audit-log-path"} {
		_, after, found := strings.Cut(rest, text)
		if err != nil || !found {
			t.Fatalf("%v: %q is not in its place:\n%s", err, text, out)
		}
		rest = after
	}
	out, err = exec.CommandContext(t.Context(), harness.Crdcached(t), "--typ", "a").CombinedOutput()
	if err == nil || string(out) != "crdcached: unknown flag: --typ; see crdcached --help\n" {
		t.Errorf("--typ: %v, %q, want an error that names --help", err, out)
	}
}
