package sharding_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

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
