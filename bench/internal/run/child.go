package run

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/crdcache/crdcache/bench/internal/experiment"
)

// marker is the only argument of a child.
const marker = "__child"

// IsChild reports whether these arguments, os.Args, are those of a child.
func IsChild(args []string) bool { return len(args) == 2 && args[1] == marker }

// ChildMain does the task that the parent wrote to standard input, and returns the exit code of the process.
func ChildMain(run experiment.Func) int {
	input := bufio.NewReader(os.Stdin)
	output := json.NewEncoder(os.Stdout)
	line, err := input.ReadBytes('\n')
	if err != nil {
		return 1
	}
	go func() { // ends with the process, or ends the process with its parent
		_, _ = io.Copy(io.Discard, input)
		os.Exit(1)
	}()
	var task experiment.Task
	if err := json.Unmarshal(line, &task); err != nil {
		return fail(output, err)
	}
	stop, err := profile(task.Profile)
	if err != nil {
		return fail(output, err)
	}
	outcome, err := run(context.Background(), task, func() error { return output.Encode(message{Ready: true}) })
	if err := errors.Join(err, stop()); err != nil {
		return fail(output, err)
	}
	if err := output.Encode(message{Outcome: &outcome}); err != nil {
		return 1
	}
	return 0
}

func fail(output *json.Encoder, err error) int {
	_ = output.Encode(message{Error: err.Error()})
	return 1
}

// message is a line from a child to its parent: one of the fields is set.
type message struct {
	Ready   bool                `json:",omitempty"`
	Outcome *experiment.Outcome `json:",omitempty"`
	Error   string              `json:",omitempty"`
}
