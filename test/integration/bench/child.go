package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/pprof"
	"strings"

	"github.com/crdcache/crdcache/test/integration/bench/internal/experiment"
)

// A child is a new process of this program that runs one experiment. It reads its task from standard input,
// and writes the result to standard output. It ends when its standard input ends, and so with its parent.

// childMarker is the only argument of a child.
const childMarker = "__child"

// isChild reports whether args, which is os.Args, belongs to a child.
func isChild(args []string) bool { return len(args) == 2 && args[1] == childMarker }

// childMain runs the task from standard input and returns the exit code of the process.
func childMain(run experiment.Func) int {
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

// startProfile starts a CPU profile, unless prefix is empty. stop ends it.
func startProfile(prefix string) (stop func() error, err error) {
	if prefix == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(prefix + ".pprof")
	if err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return file.Close()
	}, pprof.StartCPUProfile(file)
}

// startChild runs a task in a child and waits for it. It calls ready on this goroutine when the child is
// ready. When ctx ends, it kills the child.
func startChild(ctx context.Context, task experiment.Task,
	ready func(context.Context) error) (experiment.Outcome, error) {
	program, err := os.Executable()
	if err != nil {
		return experiment.Outcome{}, err
	}
	program = cmp.Or(task.Program, program)
	return startCommand(ctx, exec.CommandContext(ctx, program, childMarker), task, ready)
}

// startCommand runs a task in a child that command starts. Otherwise, it is like startChild.
func startCommand(ctx context.Context, command *exec.Cmd, task experiment.Task,
	ready func(context.Context) error) (experiment.Outcome, error) {
	line, err := json.Marshal(task)
	if err != nil {
		return experiment.Outcome{}, err
	}
	var stderr bytes.Buffer
	command.Env = append(os.Environ(), task.Env...)
	command.Stderr = &stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return experiment.Outcome{}, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return experiment.Outcome{}, err
	}
	if err := command.Start(); err != nil {
		return experiment.Outcome{}, err
	}
	outcome, err := exchangeMessages(ctx, append(line, '\n'), stdin, json.NewDecoder(stdout), ready)
	if err != nil {
		_ = command.Process.Kill() // it may be busy
	}
	// Wait closes the child's standard input. Closing it earlier would end the child too soon.
	if ended := command.Wait(); err == nil {
		err = ended
	}
	if err != nil {
		return experiment.Outcome{}, describeFailure(ctx, task, err, stderr.String())
	}
	return outcome, nil
}

// exchangeMessages sends the task and reads messages until the result.
func exchangeMessages(ctx context.Context, task []byte, stdin io.Writer, messages *json.Decoder,
	ready func(context.Context) error) (experiment.Outcome, error) {
	if _, err := stdin.Write(task); err != nil {
		return experiment.Outcome{}, err
	}
	for {
		var m childMessage
		if err := messages.Decode(&m); err != nil {
			return experiment.Outcome{}, fmt.Errorf("the child ended without a result: %w", err)
		}
		switch {
		case m.Error != "":
			return experiment.Outcome{}, errors.New(m.Error)
		case m.Outcome != nil:
			return *m.Outcome, nil
		case m.Ready && ready != nil:
			if err := ready(ctx); err != nil {
				return experiment.Outcome{}, err
			}
		}
	}
}

// describeFailure returns an error with the task, the cause and the end of the child's output.
func describeFailure(ctx context.Context, task experiment.Task, err error, printed string) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	const most = 2000
	if printed = strings.TrimSpace(printed); len(printed) > most {
		printed = "… " + printed[len(printed)-most:]
	}
	if printed != "" {
		printed = "\n" + printed
	}
	return fmt.Errorf("%s of %s with %d %s objects: %w%s", task.Experiment, task.Subject, task.Objects,
		task.Size, err, printed)
}
