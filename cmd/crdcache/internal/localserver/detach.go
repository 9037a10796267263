package localserver

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
)

// Log returns the path of a detached server's log.
func (p SocketDir) Log() string { return filepath.Join(p.Dir, "log") }

// EndedError is returned for a server that ended before it answered. Its log has the cause.
type EndedError struct {
	Code int
}

func (e *EndedError) Error() string { return fmt.Sprintf("the server ended with exit code %d", e.Code) }

const pollInterval = 10 * time.Millisecond

// Detach starts program as a server in the background and returns when the server answers. The output of the
// program goes to the log file, and until then also to log. If ctx or the program ends earlier, no process
// remains.
func Detach(ctx context.Context, config *rest.Config, program string, args []string,
	log io.Writer) (Info, error) {
	identity, _, err := Identity(ctx, config)
	if err != nil {
		return Info{}, err
	}
	dir := SocketDirFor(identity)
	if err := dir.create(); err != nil {
		return Info{}, err
	}
	if client, err := newClient(config, identity, dir); err == nil {
		if _, err := client.Info(ctx); err == nil {
			return Info{}, ErrAlreadyRunning
		}
	}
	file, err := os.OpenFile(dir.Log(), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return Info{}, err
	}
	defer file.Close()
	defer func() { _, _ = io.Copy(log, io.NewSectionReader(file, 0, 1<<20)) }() // as far as it is readable
	cmd := exec.Command(program)
	cmd.Args = args
	cmd.Stdout, cmd.Stderr = file, file
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return Info{}, err
	}
	programEnded := make(chan struct{})
	go func() { defer close(programEnded); _ = cmd.Wait() }() // ends with the server, or with the process
	for {
		if client, err := newClient(config, identity, dir); err == nil {
			if info, err := client.Info(ctx); err == nil && info.PID == cmd.Process.Pid {
				return info, nil
			}
		}
		select {
		case <-programEnded:
			return Info{}, &EndedError{cmd.ProcessState.ExitCode()}
		case <-ctx.Done():
			_ = cmd.Process.Kill() // if it is still running
			<-programEnded
			return Info{}, context.Cause(ctx)
		case <-time.After(pollInterval):
		}
	}
}
