package sharding_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/crdcache/crdcache/test/integration/harness"
)

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
