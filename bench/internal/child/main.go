package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
)

// marker is the only argument of a child.
const marker = "__child"

// Is reports whether these arguments, os.Args, are those of a child.
func Is(args []string) bool { return len(args) == 2 && args[1] == marker }

// Main does the task that the parent wrote to standard input, and returns the exit code of the process.
func Main(run Run) int {
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
	var task Task
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
