package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
)

// Log is the path of what a detached server has to say.
func (p Place) Log() string { return filepath.Join(p.Folder, "log") }

// EndedError is the error of a server that ended before it answered; its log says why.
type EndedError struct {
	// Code is its exit code.
	Code int
}

// Error implements error.
func (e *EndedError) Error() string { return fmt.Sprintf("the server ended with exit code %d", e.Code) }

// pause is how long Detach waits before it asks the server again.
const pause = 10 * time.Millisecond

// Detach starts a program that will serve at the place of a config, in the background, with its output in the
// log there, and returns when it answers. log is given what it says until then. If ctx ends before, or the
// program does, it is not left behind.
func Detach(ctx context.Context, config *rest.Config, program string, args []string,
	log io.Writer) (Info, error) {
	identity, err := Identity(ctx, config)
	if err != nil {
		return Info{}, err
	}
	place := PlaceOf(identity)
	if err := place.make(); err != nil {
		return Info{}, err
	}
	if client, err := newClient(config, identity, place); err == nil {
		if _, err := client.Info(ctx); err == nil {
			return Info{}, ErrServed
		}
	}
	file, err := os.OpenFile(place.Log(), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return Info{}, err
	}
	defer file.Close()
	defer func() { _, _ = io.Copy(log, io.NewSectionReader(file, 0, 1<<20)) }() // what can be read of it
	cmd := exec.Command(program)
	cmd.Args = args
	cmd.Stdout, cmd.Stderr = file, file
	alone(cmd)
	if err := cmd.Start(); err != nil {
		return Info{}, err
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }() // ends with the server, or with the process
	info, err := await(ctx, func() (*Client, error) { return newClient(config, identity, place) },
		cmd.Process.Pid, ended)
	if err == nil {
		return info, nil
	}
	_ = cmd.Process.Kill() // unless it has ended
	<-ended
	if errors.Is(err, errEnded) {
		return info, &EndedError{cmd.ProcessState.ExitCode()}
	}
	return info, err
}

var errEnded = errors.New("it has ended")

// await waits until a process answers.
func await(ctx context.Context, connect func() (*Client, error), pid int,
	ended <-chan struct{}) (Info, error) {
	for {
		client, err := connect()
		if err == nil {
			info, err := client.Info(ctx)
			if err == nil && info.PID == pid {
				return info, nil
			}
		}
		select {
		case <-ended:
			return Info{}, errEnded
		case <-ctx.Done():
			return Info{}, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
