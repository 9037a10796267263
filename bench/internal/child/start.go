package child

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
)

// Start does a task in a child and waits for it. It calls ready, on this goroutine, when the child is. When ctx
// ends, the child is killed.
func Start(ctx context.Context, task Task, ready func(context.Context) error) (Outcome, error) {
	program, err := os.Executable()
	if err != nil {
		return Outcome{}, err
	}
	return start(ctx, exec.CommandContext(ctx, program, marker), task, ready)
}

// start is Start for any program.
func start(ctx context.Context, command *exec.Cmd, task Task, ready func(context.Context) error) (Outcome, error) {
	line, err := json.Marshal(task)
	if err != nil {
		return Outcome{}, err
	}
	var stderr bytes.Buffer
	command.Env = append(os.Environ(), task.Env...)
	command.Stderr = &stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return Outcome{}, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return Outcome{}, err
	}
	if err := command.Start(); err != nil {
		return Outcome{}, err
	}
	outcome, err := converse(ctx, append(line, '\n'), stdin, json.NewDecoder(stdout), ready)
	if err != nil {
		_ = command.Process.Kill() // it may be in the middle of something
	}
	// Wait closes the standard input behind the child. Closed before, it would end the child in its last moment.
	if ended := command.Wait(); err == nil {
		err = ended
	}
	if err != nil {
		return Outcome{}, describe(ctx, task, err, stderr.String())
	}
	return outcome, nil
}

// converse hands over the task and reads messages until one says how it ended.
func converse(ctx context.Context, task []byte, stdin io.Writer, messages *json.Decoder, ready func(context.Context) error) (Outcome, error) {
	if _, err := stdin.Write(task); err != nil {
		return Outcome{}, err
	}
	for {
		var m message
		if err := messages.Decode(&m); err != nil {
			return Outcome{}, fmt.Errorf("it ended without a result: %w", err)
		}
		switch {
		case m.Error != "":
			return Outcome{}, errors.New(m.Error)
		case m.Outcome != nil:
			return *m.Outcome, nil
		case m.Ready && ready != nil:
			if err := ready(ctx); err != nil {
				return Outcome{}, err
			}
		}
	}
}

// describe says what failed, with the end of what the child printed.
func describe(ctx context.Context, task Task, err error, printed string) error {
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
	return fmt.Errorf("%s of %s with %d %s objects: %w%s", task.Experiment, task.Subject, task.Objects, task.Size, err, printed)
}
