package run

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime/pprof"

	"github.com/crdcache/crdcache/bench/internal/experiment"
)

// childMarker is the only argument of a child.
const childMarker = "__child"

// IsChild reports whether args, which is os.Args, belongs to a child.
func IsChild(args []string) bool { return len(args) == 2 && args[1] == childMarker }

// ChildMain runs the task from standard input and returns the exit code of the process.
func ChildMain(run experiment.Func) int {
	input := bufio.NewReader(os.Stdin)
	output := json.NewEncoder(os.Stdout)
	line, err := input.ReadBytes('\n')
	if err != nil {
		return 1
	}
	go func() { // ends with the process; the end of standard input ends the process
		_, _ = io.Copy(io.Discard, input)
		os.Exit(1)
	}()
	var task experiment.Task
	if err := json.Unmarshal(line, &task); err != nil {
		return sendError(output, err)
	}
	stop, err := startProfile(task.Profile)
	if err != nil {
		return sendError(output, err)
	}
	outcome, err := run(context.Background(), task,
		func() error { return output.Encode(childMessage{Ready: true}) })
	if err := errors.Join(err, stop()); err != nil {
		return sendError(output, err)
	}
	if err := output.Encode(childMessage{Outcome: &outcome}); err != nil {
		return 1
	}
	return 0
}

func sendError(output *json.Encoder, err error) int {
	_ = output.Encode(childMessage{Error: err.Error()})
	return 1
}

// childMessage is a line from a child to its parent. One field is set.
type childMessage struct {
	Ready   bool                `json:",omitempty"`
	Outcome *experiment.Outcome `json:",omitempty"`
	Error   string              `json:",omitempty"`
}

// startProfile starts a CPU profile, unless path is empty. stop ends it.
func startProfile(path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, nil
}
