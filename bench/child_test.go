package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/crdcache/crdcache/bench/internal/experiment"
)

// TestMain runs the test binary as a child process if its only argument is childMarker.
func TestMain(m *testing.M) {
	if isChild(os.Args) {
		os.Exit(childMain(runTestTask))
	}
	os.Exit(m.Run())
}

// runTestTask runs a task of the tests. Its experiment names the behaviour.
func runTestTask(_ context.Context, task experiment.Task, ready func() error) (experiment.Outcome, error) {
	switch task.Experiment {
	case "works":
		if err := ready(); err != nil {
			return experiment.Outcome{}, err
		}
		return experiment.Outcome{
			Metrics: map[string]float64{"objects": float64(task.Objects)},
			Seen:    map[string]time.Time{"a/b": time.Unix(7, 9)},
		}, nil
	case "environment":
		return experiment.Outcome{}, errors.New("it is " + os.Getenv("BENCH_TEST"))
	case "fails":
		return experiment.Outcome{}, errors.New("no luck")
	case "panics":
		panic("in the child")
	default: // block until the process is killed
		if err := ready(); err != nil {
			return experiment.Outcome{}, err
		}
		select {}
	}
}

// runTask runs an experiment of the test's child program and returns its outcome.
func runTask(ctx context.Context, t *testing.T, name string,
	ready func(context.Context) error) (experiment.Outcome, error) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	task := experiment.Task{Experiment: name, Subject: "subject", Size: "small", Objects: 42,
		Env: []string{"BENCH_TEST=set"}}
	return startCommand(ctx, exec.CommandContext(ctx, program, childMarker), task, ready)
}

func TestStartChild(t *testing.T) {
	calls := 0
	outcome, err := runTask(t.Context(), t, "works", func(context.Context) error { calls++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	if calls != 1 || outcome.Metrics["objects"] != 42 || !outcome.Seen["a/b"].Equal(time.Unix(7, 9)) {
		t.Errorf("ready was called %d times with the outcome %v, want once and 42 objects", calls, outcome)
	}
}

func TestStartChildFailures(t *testing.T) {
	broken := errors.New("broken")
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	tests := map[string]struct {
		experiment string
		ready      func(context.Context) error
		want       string
		wantIs     error
	}{
		"the child fails":  {"fails", nil, "no luck", nil},
		"the child dies":   {"panics", nil, "in the child", nil},
		"the environment":  {"environment", nil, "it is set", nil},
		"the parent fails": {"stays", func(context.Context) error { return broken }, "broken", broken},
		"interrupted, last": {"stays", func(context.Context) error { cancel(interrupted); return nil },
			"interrupted", interrupted},
	}
	for _, name := range []string{"the child fails", "the child dies", "the environment", "the parent fails",
		"interrupted, last"} {
		tt := tests[name]
		t.Run(name, func(t *testing.T) {
			_, err := runTask(ctx, t, tt.experiment, tt.ready)
			if err == nil || !strings.Contains(err.Error(), tt.want) ||
				!strings.Contains(err.Error(), "subject with 42 small objects") {
				t.Errorf("the error is %v, want %q and the task in it", err, tt.want)
			}
			if tt.wantIs != nil && !errors.Is(err, tt.wantIs) {
				t.Errorf("the error is %v, want it to be %v", err, tt.wantIs)
			}
		})
	}
}

// TestChildExitsWhenStdinEnds verifies that a child ends with its parent, which closes the child's stdin.
func TestChildExitsWhenStdinEnds(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program, childMarker)
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(stdin, `{"Experiment":"stays"}`); err != nil {
		t.Fatal(err)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := command.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("the child ended with %v, want exit code 1", err)
	}
}
