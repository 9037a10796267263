package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Names of the components, and of their log files.
const (
	etcdName      = "etcd"
	apiServerName = "apiserver"
)

const (
	// readyTimeout limits the start of a component.
	readyTimeout = 60 * time.Second
	// stopGrace is the time between SIGTERM and SIGKILL. Connected clients delay a graceful end: the API
	// server waits for watches, etcd for streams. SIGKILL loses no data.
	stopGrace = time.Second
)

// component runs one program through envtest. envtest hides the process, so its ID comes from the file that
// the launcher writes.
type component struct {
	name   string
	dir    directory
	server interface {
		Start() error
		Stop() error
	} // *envtest.Etcd or *envtest.APIServer
	log *os.File
}

func openLog(dir directory, name string) (*os.File, error) {
	return os.OpenFile(dir.file(name+".log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
}

// start starts the process and returns when envtest reports that it is healthy. After an error, nothing runs.
func (c *component) start(ctx context.Context) error {
	offset, err := c.log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	// envtest's Start takes no context, but returns when the process ends.
	stopWatching := context.AfterFunc(ctx, c.signalKill)
	err = c.server.Start()
	if !stopWatching() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.kill()
		return fmt.Errorf("%s did not start: %w; from %s:\n%s", c.name, err, c.log.Name(), excerpt(c.log, offset))
	}
	return nil
}

// alive reports whether the process exists. It is not a zombie, because envtest waits for it. It leads a
// process group, so another process with a reused ID is hardly mistaken for it.
func (c *component) alive() bool {
	pid := readPID(c.dir.pidPath(c.name))
	if pid == 0 {
		return false
	}
	group, err := syscall.Getpgid(pid)
	return err == nil && group == pid
}

func (c *component) signalKill() {
	if c.alive() {
		_ = syscall.Kill(readPID(c.dir.pidPath(c.name)), syscall.SIGKILL)
	}
}

// kill kills the process and waits for its end. Killing a dead component has no effect.
func (c *component) kill() {
	c.signalKill()
	c.stop()
}

// stop ends the process with SIGTERM, and with SIGKILL after stopGrace. It waits for its end.
func (c *component) stop() {
	_ = c.server.Stop() // an error means that the process still runs after SIGTERM
	for c.alive() {
		time.Sleep(5 * time.Millisecond)
	}
	_ = os.Remove(c.dir.pidPath(c.name))
}

// excerpt returns the first and the last lines of a log from an offset on, indented. A failed start names a
// bad flag before its usage text, and a port conflict at the end.
func excerpt(log io.ReaderAt, from int64) string {
	const head, tail, width = 3, 10, 300
	data, err := io.ReadAll(io.NewSectionReader(log, from, 1<<20))
	if err != nil {
		return "  " + err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	var shown strings.Builder
	for i, line := range lines {
		if i < head || i >= len(lines)-tail {
			fmt.Fprintf(&shown, "  %.*s\n", width, line)
		} else if i == head {
			shown.WriteString("  …\n")
		}
	}
	return strings.TrimSuffix(shown.String(), "\n")
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
