package sharding_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/adapters/shard"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// startReceiver receives the replicas' reports until the test ends.
func (s *fixture) startReceiver() {
	s.Helper()
	server := rpc.NewServer()
	if err := server.RegisterName("Receiver", &reportReceiver{s}); err != nil {
		s.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	s.address = listener.Addr().String()
	s.Cleanup(func() { _ = listener.Close() })
	go func() { // ended by the cleanup
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go server.ServeConn(connection) // ends with the replica
		}
	}()
}

// reportReceiver has the methods that replicas call.
type reportReceiver struct{ fixture *fixture }

// Acquired receives the report that a replica has acquired a shard.
func (t *reportReceiver) Acquired(r Report, _ *struct{}) error {
	s := t.fixture
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isStaleLocked(r) {
		return nil
	}
	if known := s.mu.tokens[r.Shard]; r.Token <= known && s.mu.holders[r.Shard] != nil {
		s.Errorf("%s acquired shard %d with the token %d after the token %d", r.Replica, r.Shard, r.Token,
			known)
	}
	s.mu.holders[r.Shard], s.mu.tokens[r.Shard] = s.mu.replicas[r.Replica], r.Token
	return nil
}

// Left receives the report that a replica releases a shard or has lost it.
func (t *reportReceiver) Left(r Report, _ *struct{}) error {
	s := t.fixture
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.tokens[r.Shard] != r.Token {
		return nil // another replica holds it
	}
	delete(s.mu.holders, r.Shard)
	if _, known := s.mu.endedOwnerships[r.Shard]; !known {
		s.mu.endedOwnerships[r.Shard] = ownershipEnd{s.mu.replicas[r.Replica], time.Now(), graceful}
	}
	return nil
}

// isStaleLocked reports whether a later ownership exists. Only a suspended replica may send such a report.
func (s *fixture) isStaleLocked(r Report) bool {
	if r.Token >= s.mu.tokens[r.Shard] {
		return false
	}
	if by := s.mu.replicas[r.Replica]; by.paused {
		by.stale++
	} else {
		s.Errorf("%s works in shard %d with the token %d after the token %d", r.Replica, r.Shard, r.Token,
			s.mu.tokens[r.Shard])
	}
	return true
}

// Begin receives the report that a replica starts to reconcile an object.
func (t *reportReceiver) Begin(r Report, _ *struct{}) error {
	s := t.fixture
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isStaleLocked(r) {
		return nil
	}
	by := s.mu.replicas[r.Replica]
	other, working := s.mu.busy[r.UID]
	if pausedOrGone := working && (other.by.gone || other.by.paused && other.token < r.Token); working &&
		!pausedOrGone {
		s.Errorf("%s reconciles %s while %s does", r.Replica, r.Object, other.by.name)
	}
	if d, ok := s.mu.endedOwnerships[r.Shard]; ok && d.from != by {
		delete(s.mu.endedOwnerships, r.Shard)
		s.mu.handOvers[d.endManner] = append(s.mu.handOvers[d.endManner], time.Since(d.at))
	}
	s.mu.busy[r.UID] = reconciliation{by, r.Token}
	return nil
}

// GiveUp receives the report that a replica abandons the reconciliation.
func (t *reportReceiver) GiveUp(r Report, _ *struct{}) error {
	s := t.fixture
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doneLocked(r)
	return nil
}

// End receives the report that the reconciliation is done.
func (t *reportReceiver) End(r Report, _ *struct{}) error {
	s := t.fixture
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doneLocked(r)
	if s.isStaleLocked(r) {
		return nil
	}
	var number int
	if _, err := fmt.Sscanf(r.Object, "object-%d", &number); err != nil {
		return err
	}
	s.mu.reconciled[number] = r.Value
	return nil
}

func (s *fixture) doneLocked(r Report) {
	if w := s.mu.busy[r.UID]; w.by == s.mu.replicas[r.Replica] && w.token == r.Token {
		delete(s.mu.busy, r.UID)
	}
}

// Deleted receives the report that a replica considers an object deleted.
func (t *reportReceiver) Deleted(r Report, _ *struct{}) error {
	s := t.fixture
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.deleted = append(s.mu.deleted, r.Object+" by "+r.Replica)
	return nil
}

// replica is a process that shares objects.
type replica struct {
	name    string
	process *os.Process
	// terminate sends SIGTERM, as a kubelet does, and waits until the process has exited.
	terminate func()

	// fixture.mu guards the following fields. gone means killed. paused means suspended; the replica may not
	// know yet that its ownership has ended.
	gone, paused bool
	// stale counts reports about shards that another replica has acquired.
	stale int
}

// startReplica starts a replica that reaches the API server at host.
func (s *fixture) startReplica(name, host string) *replica {
	s.Helper()
	options, err := json.Marshal(childOptions{
		Name: name, Namespace: s.namespace, Kubeconfig: harness.Kubeconfig(s), Host: host,
		TestAddress: s.address, Shards: *shards,
	})
	if err != nil {
		s.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	command := exec.Command(program)
	command.Env = append(os.Environ(), childEnv+"="+string(options))
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe() // the process ends when this is closed
	if err != nil {
		s.Fatal(err)
	}
	r := &replica{name: name}
	s.mu.Lock()
	s.mu.replicas[name] = r
	s.mu.Unlock()
	if err := command.Start(); err != nil {
		s.Fatal(err)
	}
	r.process = command.Process
	r.terminate = sync.OnceFunc(func() {
		_ = r.process.Signal(syscall.SIGCONT) // a failed test may have left it suspended
		_ = r.process.Signal(syscall.SIGTERM)
		err := command.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil && !r.gone {
			s.Errorf("%s ended: %v", name, err)
		}
	})
	s.Cleanup(func() {
		r.terminate()
		_ = stdin.Close()
	})
	return r
}

// signal sends a signal to a replica. Other replicas must then take its shards.
func (s *fixture) signal(r *replica, signal syscall.Signal, how endManner) {
	s.Helper()
	s.mu.Lock()
	r.gone, r.paused = signal == syscall.SIGKILL, signal == syscall.SIGSTOP
	s.endOwnershipLocked(r, how)
	s.mu.Unlock()
	if err := r.process.Signal(signal); err != nil {
		s.Fatal(err)
	}
}

// childEnv has the childOptions of a replica's process as JSON.
const childEnv = "CRDCACHE_TEST_SHARDING_REPLICA"

// Leases expire sooner than by default. The gap between two ownerships remains 3 s.
const (
	leaseDuration = 8 * time.Second
	renewDeadline = 5 * time.Second
	retryPeriod   = time.Second
)

// workers limits the concurrent reconciliations of a replica.
const workers = 4

type childOptions struct {
	Name, Namespace string
	// Kubeconfig is a file. Host is the address of the API server.
	Kubeconfig, Host string
	// TestAddress is the address of the test.
	TestAddress string
	Shards      int
}

// Report is a message of a replica to the test. net/rpc requires an exported type. The replica waits for the
// answer, so the test receives the reports of several replicas in their real order.
type Report struct {
	Replica string
	UID     types.UID
	Object  string
	Value   string
	Shard   int
	Token   int64
}

// child is a manager that shards ConfigMaps.
type child struct {
	childOptions
	test *rpc.Client
}

// runChild runs a replica and returns the exit code of its process.
func runChild(text string) int {
	var c child
	if err := errors.Join(json.Unmarshal([]byte(text), &c.childOptions), c.run()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (c *child) run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() { // ends with the process; the end of the test ends the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	if c.test, err = rpc.Dial("tcp", c.TestAddress); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return err
	}
	config.Host = c.Host
	mgr, err := c.manager(config)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func (c *child) manager(rest *rest.Config) (ctrl.Manager, error) {
	member, err := shard.New(shard.Options{
		Config: rest, Namespace: c.Namespace, Name: "scale", Identity: c.Name, Shards: c.Shards,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		DrainTimeout: time.Second,
	})
	if err != nil {
		return nil, err
	}
	sharding, err := controllerruntime.NewSharding(controllerruntime.ShardingOptions{
		Assigner: reportingAssigner{member, c}, Key: sharding.ByUID,
		Objects: []client.Object{&corev1.ConfigMap{}},
	})
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(rest, ctrl.Options{
		NewCache:   controllerruntime.NewCacheFunc(controllerruntime.Options{Sharding: sharding}),
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{c.Namespace: {}}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{MaxConcurrentReconciles: workers},
	})
	if err != nil {
		return nil, err
	}
	reconciler := sharding.Reconciler(&corev1.ConfigMap{},
		reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
			return ctrl.Result{}, c.reconcile(ctx, mgr.GetClient(), request)
		}))
	return mgr, errors.Join(mgr.Add(sharding),
		ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconciler))
}

// reportingAssigner is an Assigner that reports changes of shards to the test.
type reportingAssigner struct {
	*shard.Member
	child *child
}

func (t reportingAssigner) Run(ctx context.Context, handler shard.Handler) error {
	return t.Member.Run(ctx, shard.Handler{
		Acquired: func(ownerships []*shard.Ownership) {
			for _, ownership := range ownerships {
				t.child.sendReport("Acquired", Report{Shard: ownership.Shard(), Token: ownership.Token()})
			}
			handler.Acquired(ownerships)
		},
		Drain: func(ctx context.Context, ownership *shard.Ownership) {
			t.child.sendReport("Left", Report{Shard: ownership.Shard(), Token: ownership.Token()})
			handler.Drain(ctx, ownership)
		},
	})
}

// sendReport sends a report. It ends the process if the test has ended.
func (c *child) sendReport(kind string, r Report) {
	r.Replica = c.Name
	if err := c.test.Call("Receiver."+kind, r, &struct{}{}); err != nil {
		fmt.Fprintln(os.Stderr, kind, err)
		os.Exit(1)
	}
}

// reconcile simulates work on an object and then reports the object's value, unless the ownership has ended.
func (c *child) reconcile(ctx context.Context, reader client.Reader, request ctrl.Request) error {
	var object corev1.ConfigMap
	if err := reader.Get(ctx, request.NamespacedName, &object); apierrors.IsNotFound(err) {
		c.sendReport("Deleted", Report{Object: request.Name})
		return nil
	} else if err != nil {
		return err
	}
	if object.Data["v"] == "" {
		return nil // kube-root-ca.crt
	}
	ownership := controllerruntime.OwnershipFrom(ctx)
	r := Report{UID: object.UID, Object: object.Name, Value: object.Data["v"], Shard: ownership.Shard(),
		Token: ownership.Token()}
	c.sendReport("Begin", r)
	select { // some work
	case <-time.After(time.Millisecond):
	case <-ctx.Done():
	}
	if ctx.Err() != nil || !ownership.Valid() {
		c.sendReport("GiveUp", r)
		return context.Cause(ctx)
	}
	c.sendReport("End", r)
	return nil
}
