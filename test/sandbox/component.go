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
	readyTimeout = 3 * time.Minute
	// stopGracePeriod is the time between SIGTERM and SIGKILL. Connected clients delay a graceful end,
	// because the API server waits for watches and etcd for streams. SIGKILL loses no data.
	stopGracePeriod = time.Second
)

// component runs one program through envtest. envtest hides the process. The launcher writes the process ID
// to a file.
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
	return os.OpenFile(dir.path(name+".log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
}

// start starts the process and returns when envtest reports that the process is healthy. After an error, the
// process does not run.
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
		return fmt.Errorf("%s did not start: %w; from %s:\n%s", c.name, err, c.log.Name(), excerptLog(c.log,
			offset))
	}
	return nil
}

// isAlive reports whether the process exists. The process is never a zombie, because envtest waits for it. It
// leads a process group, which distinguishes it from most processes with a reused ID.
func (c *component) isAlive() bool {
	pid := readPID(c.dir.pidPath(c.name))
	if pid == 0 {
		return false
	}
	group, err := syscall.Getpgid(pid)
	return err == nil && group == pid
}

func (c *component) signalKill() {
	if c.isAlive() {
		_ = syscall.Kill(readPID(c.dir.pidPath(c.name)), syscall.SIGKILL)
	}
}

// kill kills the process and waits for its end. It has no effect on a dead component.
func (c *component) kill() {
	c.signalKill()
	c.stop()
}

// stop ends the process with SIGTERM, and with SIGKILL after stopGracePeriod. It waits for the end.
func (c *component) stop() {
	_ = c.server.Stop() // an error means that the process still runs after SIGTERM
	for c.isAlive() {
		time.Sleep(5 * time.Millisecond)
	}
	_ = os.Remove(c.dir.pidPath(c.name))
}

// excerptLog returns the first and the last lines of a log after an offset, indented. After a failed start,
// the first lines name a bad flag and the last lines a port conflict.
func excerptLog(log io.ReaderAt, offset int64) string {
	const head, tail, width = 3, 10, 300
	data, err := io.ReadAll(io.NewSectionReader(log, offset, 1<<20))
	if err != nil {
		return "  " + err.Error()
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	var out strings.Builder
	for i, line := range lines {
		if i < head || i >= len(lines)-tail {
			fmt.Fprintf(&out, "  %.*s\n", width, line)
		} else if i == head {
			out.WriteString("  …\n")
		}
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// appendFlags adds flags in the form "name=value" or "name", with or without leading dashes. The last value
// of a flag takes precedence.
func appendFlags(arguments *envtest.Arguments, flags []string) {
	for _, flag := range flags {
		name, value, found := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		if !found {
			value = "true"
		}
		arguments.Append(name, value)
	}
}
