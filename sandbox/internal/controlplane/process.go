package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/crdcache/crdcache/sandbox/internal/child"
)

// stopGrace is how long a component may take to end by itself before it is
// killed. With clients connected neither ends soon: the API server waits for
// open watches, etcd for open streams. Being killed costs them no data.
const stopGrace = time.Second

// process is one component that can be started again after it ended.
type process struct {
	component Component
	binary    string // the component's own program; empty where it is part of this one
	log       string
	args      []string
	removeDir string // deleted by the process when it is orphaned, if not empty

	mu struct {
		sync.Mutex
		run *run // the latest run, nil before the first
	}
}

// run is one life of a process.
type run struct {
	pid      int
	stdin    io.Closer     // closing it makes the child exit
	logStart int64         // where this life begins in the log
	ended    chan struct{} // closed when the child is gone
	err      error         // how it ended; read only after ended is closed
}

func (r *run) alive() bool {
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

// start starts the process and returns its run; it must not be running.
func (p *process) start() (*run, error) {
	cmd, onParentDeath, err := p.command()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own descriptor
	logStart, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	cmd.Env = childEnv(os.Environ())
	cmd.Stdout, cmd.Stderr = log, log
	// A process group of its own keeps a terminal's Ctrl-C away from it: the
	// supervisor decides when and in which order components stop.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := child.Start(cmd, onParentDeath); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.component, err)
	}
	r := &run{pid: cmd.Process.Pid, stdin: stdin, logStart: logStart, ended: make(chan struct{})}
	go func() { // ends with the child
		r.err = cmd.Wait()
		close(r.ended)
	}()
	p.mu.Lock()
	p.mu.run = r
	p.mu.Unlock()
	return r, nil
}

// current returns the latest run, or nil.
func (p *process) current() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.run
}

func (p *process) alive() bool {
	r := p.current()
	return r != nil && r.alive()
}

// kill ends the process at once and waits until it is gone.
func (p *process) kill() {
	if r := p.current(); r != nil && r.alive() {
		_ = syscall.Kill(r.pid, syscall.SIGKILL)
		<-r.ended
	}
}

// stop asks the process to end, and kills it if it does not in time.
func (p *process) stop() {
	r := p.current()
	if r == nil || !r.alive() {
		return
	}
	_ = syscall.Kill(r.pid, syscall.SIGTERM)
	select {
	case <-r.ended:
	case <-time.After(stopGrace):
		p.kill()
	}
}

// awaitReady polls probe until it succeeds. It gives up when the process or
// ctx ends first, and then quotes the end of the log.
func (p *process) awaitReady(ctx context.Context, probe func(context.Context) error) error {
	r := p.current()
	if r == nil {
		return fmt.Errorf("%s was never started", p.component)
	}
	ticker := time.NewTicker(40 * time.Millisecond)
	defer ticker.Stop()
	var probeErr error
	for {
		if err := probe(ctx); err == nil {
			return nil
		} else if ctx.Err() == nil {
			probeErr = err // the last one that says more than "cancelled"
		}
		select {
		case <-ticker.C:
		case <-r.ended:
			return fmt.Errorf("%s ended before it was ready (%v); from %s:\n%s",
				p.component, r.err, p.log, excerpt(p.log, r.logStart))
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w (last probe: %v); from %s:\n%s",
				p.component, context.Cause(ctx), probeErr, p.log, excerpt(p.log, r.logStart))
		}
	}
}

// childEnv drops what etcd would take for configuration.
func childEnv(env []string) []string {
	kept := make([]string, 0, len(env))
	for _, e := range env {
		if !strings.HasPrefix(e, "ETCD_") {
			kept = append(kept, e)
		}
	}
	return kept
}
