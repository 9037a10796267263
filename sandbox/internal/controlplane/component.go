package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Component is one of the two processes of a sandbox.
type Component string

// The components.
const (
	Etcd      Component = "etcd"
	APIServer Component = "apiserver"
)

// ParseComponent parses a command-line argument.
func ParseComponent(s string) (Component, error) {
	switch c := Component(s); c {
	case Etcd, APIServer:
		return c, nil
	default:
		return "", fmt.Errorf("unknown component %q: want %q or %q", s, Etcd, APIServer)
	}
}

// program returns the file name of the component's binary.
func (c Component) program() string {
	if c == APIServer {
		return "kube-apiserver"
	}
	return "etcd"
}

const (
	// stopGrace is the time between SIGTERM and SIGKILL. Connected clients delay a graceful end: the API
	// server waits for watches, etcd for streams. SIGKILL loses no data.
	stopGrace = time.Second
	pollReady = 40 * time.Millisecond
	pollGone  = 5 * time.Millisecond
)

// component runs one program through envtest. envtest hides the process, so its ID comes from the file that
// the launcher writes.
type component struct {
	name     Component
	layout   Layout
	server   interface{ Start() error } // *envtest.Etcd or *envtest.APIServer
	stopping func() error
	setLog   func(io.Writer)
	ready    func(context.Context) error
	lastPID  atomic.Int64
}

func newEtcd(l Layout, server *envtest.Etcd, ready func(context.Context) error) *component {
	return &component{
		name: Etcd, layout: l, server: server, stopping: server.Stop, ready: ready,
		setLog: func(w io.Writer) { server.Out, server.Err = w, w },
	}
}

func newAPIServer(l Layout, server *envtest.APIServer, ready func(context.Context) error) *component {
	return &component{
		name: APIServer, layout: l, server: server, stopping: server.Stop, ready: ready,
		setLog: func(w io.Writer) { server.Out, server.Err = w, w },
	}
}

// start starts the process and returns when it is ready. After an error, nothing runs.
func (c *component) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	path := c.layout.Log(c.name)
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own descriptor
	offset, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	c.setLog(log)
	// envtest's Start takes no context, but returns when the process ends.
	stopWatching := context.AfterFunc(ctx, c.signalKill)
	err = c.server.Start()
	stopWatching()
	if err == nil {
		err = c.awaitReady(ctx)
	}
	if err != nil {
		c.kill()
		return fmt.Errorf("%s did not start: %w; from %s:\n%s", c.name, err, path, excerpt(path, offset))
	}
	return nil
}

// awaitReady polls until the component is ready. It returns early if the process or ctx ends.
func (c *component) awaitReady(ctx context.Context) error {
	ticker := time.NewTicker(pollReady)
	defer ticker.Stop()
	var last error
	for {
		err := c.ready(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("not ready: %w (last probe: %v)", context.Cause(ctx), last)
		case !c.alive():
			return errors.New("the process ended before it was ready")
		}
		last = err
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// pid returns the ID of the latest process, even if it has ended, or 0 before the first.
func (c *component) pid() int {
	if text, err := os.ReadFile(c.pidFile()); err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			c.lastPID.Store(int64(pid))
		}
	}
	return int(c.lastPID.Load())
}

func (c *component) pidFile() string { return c.layout.pidFile(string(c.name)) }

// alive reports whether the process exists. It is no zombie, because envtest waits for it. It leads a process
// group, which another process with a reused ID hardly does.
func (c *component) alive() bool {
	if _, err := os.Stat(c.pidFile()); err != nil {
		return false
	}
	pid := c.pid()
	group, err := syscall.Getpgid(pid)
	return err == nil && group == pid
}

func (c *component) signalKill() {
	if c.alive() {
		_ = syscall.Kill(c.pid(), syscall.SIGKILL)
	}
}

// kill kills the process and waits for its end.
func (c *component) kill() {
	c.signalKill()
	c.stop()
}

// stop ends the process with SIGTERM, and with SIGKILL after stopGrace. It waits for its end.
func (c *component) stop() {
	_ = c.stopping() // an error means that SIGTERM was not enough
	for c.alive() {
		time.Sleep(pollGone)
	}
	c.pid() // cached for Status
	_ = os.Remove(c.pidFile())
}

// appendFlags adds flags as "name=value" or "name", with or without leading dashes. The last value of a flag
// wins.
func appendFlags(to *envtest.Arguments, flags []string) {
	for _, flag := range flags {
		name, value, found := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		if !found {
			value = "true"
		}
		to.Append(name, value)
	}
}
