package crdcached_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
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
	must(t, err)
	t.Cleanup(func() { _ = syscall.Close(socket) })
	syscall.CloseOnExec(socket)
	err = errors.Join(
		syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1), // as net.Listen does
		syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}),
	)
	bound, nameErr := syscall.Getsockname(socket)
	must(t, errors.Join(err, nameErr))
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

// daemonServer is a crdcached that keeps its address when it is restarted.
type daemonServer struct {
	*testing.T
	kubeconfig, configText, port string
	server                       *harness.CrdcachedServer
}

// startDaemon starts a crdcached and returns when it serves the types.
func startDaemon(t *testing.T, gvrs ...schema.GroupVersionResource) *daemonServer {
	t.Helper()
	d := newDaemon(t, gvrs...)
	d.restart()
	return d
}

// newDaemon reserves the address of a crdcached, and does not start it.
func newDaemon(t *testing.T, gvrs ...schema.GroupVersionResource) *daemonServer {
	t.Helper()
	d := &daemonServer{T: t, kubeconfig: harness.CrdcachedKubeconfig(t), configText: "types:\n"}
	for _, gvr := range gvrs {
		d.configText += fmt.Sprintf("- %s\n", gvr.GroupResource())
	}
	_, port, err := net.SplitHostPort(reserveAddress(t))
	must(t, err)
	d.port = port
	return d
}

func (d *daemonServer) restart() {
	d.Helper()
	d.server = harness.StartCrdcachedIn(d, d.kubeconfig, d.configText, "--secure-port="+d.port)
}

func (d *daemonServer) kill() { d.server.Kill() }

// config implements server. It trusts all certificates that the daemon creates at its starts.
func (d *daemonServer) config() *rest.Config {
	config := d.server.As(harness.Config(d))
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
	return config
}

// informerChecker is an event handler of a client-go informer that records its events.
type informerChecker struct {
	name string
	mu   struct {
		sync.Mutex
		state      map[string]objectState
		delivered  []entry
		violations []string
	}
}

// startFollowers starts informers. Some use only the victim, and some alternate between both servers.
func startFollowers(t *testing.T, gvr schema.GroupVersionResource, victim, other server) []*informerChecker {
	t.Helper()
	var all []*informerChecker
	for name, config := range map[string]*rest.Config{"the victim": victim.config(),
		"both": alternatingConfig(t, victim.config(), other.config()), "the cluster and the victim": alternatingConfig(t,
			victim.config(), harness.Config(t))} {
		for form, follow := range map[string]func(*testing.T, *rest.Config,
			schema.GroupVersionResource) cache.SharedIndexInformer{
			"dynamic": newDynamicInformer, "metadata": newMetadataInformer,
		} {
			f := &informerChecker{name: form + " by " + name}
			f.mu.state = map[string]objectState{}
			informer := follow(t, config, gvr)
			if _, err := informer.AddEventHandler(f); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan struct{})
			go func() { defer close(ended); informer.RunWithContext(ctx) }() // ended by cancel
			t.Cleanup(func() { cancel(); <-ended })
			all = append(all, f)
		}
	}
	return all
}

// alternatingConfig returns a configuration that alternates between two servers.
func alternatingConfig(t *testing.T, config, others *rest.Config) *rest.Config {
	t.Helper()
	next, err := rest.TransportFor(others)
	must(t, err)
	address, _, err := rest.DefaultServerUrlFor(others)
	must(t, err)
	var count atomic.Int64
	config.Wrap(func(first http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if count.Add(1)%2 == 0 {
				return first.RoundTrip(r)
			}
			r = r.Clone(r.Context())
			r.URL.Scheme, r.URL.Host, r.Host = address.Scheme, address.Host, ""
			r.Header.Del("Authorization") // the header is for the first server
			return next.RoundTrip(r)
		})
	})
	return config
}

func (f *informerChecker) OnAdd(obj any, _ bool) { f.record("add", obj.(metav1.Object)) }

func (f *informerChecker) OnUpdate(_, obj any) { f.record("update", obj.(metav1.Object)) }

func (f *informerChecker) OnDelete(obj any) {
	if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = lost.Obj
	}
	f.record("delete", obj.(metav1.Object))
}

// record stores an event, and a violation if it contradicts the earlier events.
func (f *informerChecker) record(verb string, o metav1.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key, received := keyOf(o), stateOf(o)
	previous, exists := f.mu.state[key]
	// After a list, an informer can report a replaced object as an update. Versions must never decrease.
	if exists == (verb == "add") || received.version < previous.version {
		f.mu.violations = append(f.mu.violations, fmt.Sprintf("%s: %s %s %+v, but the previous state is %+v",
			f.name, verb, key, received, previous))
	}
	if verb == "delete" {
		delete(f.mu.state, key)
		return
	}
	f.mu.state[key] = received
	f.mu.delivered = append(f.mu.delivered, entry{key, received})
}

// compare compares the state according to the events with the written objects.
func (f *informerChecker) compare(w *writer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return w.diff(f.name, maps.Clone(f.mu.state))
}

// check fails the test if events contradict each other, or have a state that was never written.
func (f *informerChecker) check(t *testing.T, w *writer) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range f.mu.violations {
		t.Error(line)
	}
	for _, e := range f.mu.delivered {
		if w.log[e.version] != e {
		}
	}
}
