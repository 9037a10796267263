package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/crdcache/crdcache/bench/internal/experiment"
)

// startChild runs a task in a child and waits for it. It calls ready on this goroutine when the child is
// ready. When ctx ends, it kills the child.
func startChild(ctx context.Context, task experiment.Task,
	ready func(context.Context) error) (experiment.Outcome, error) {
	program, err := os.Executable()
	if err != nil {
		return experiment.Outcome{}, err
	}
	return startCommand(ctx, exec.CommandContext(ctx, program, childMarker), task, ready)
}

// startCommand is startChild for any program.
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
			return experiment.Outcome{}, fmt.Errorf("it ended without a result: %w", err)
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

// describeFailure returns an error that names the task and includes the end of the child's output.
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
