package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// fill provides a sandbox with the objects of a step.
func (r *runner) fill(ctx context.Context, step Step) error {
	if r.sandbox != nil && (r.size != step.Size || r.gates != step.Gates) {
		if err := r.stopSandbox(); err != nil {
			return err
		}
	}
	if r.sandbox == nil {
		started, err := startSandbox(ctx, r.options.Sandbox, r.crds, step.Size, step.Gates)
		if err != nil {
			return err
		}
		r.sandbox, r.size, r.gates = started, step.Size, step.Gates
		if r.result.Machine.Kubernetes, err = r.sandbox.Version(ctx); err != nil {
			return err
		}
	}
	if err := r.sandbox.Fill(ctx, step.Objects); err != nil {
		return err
	}
	return r.awaitReadable(ctx, step)
}

// awaitReadable reads all objects until that succeeds. A server that was just filled may still be loading
// them, and interrupts watches.
func (r *runner) awaitReadable(ctx context.Context, step Step) error {
	if r.settled == step.Objects {
		return nil
	}
	step = Step{Experiment: experiment.Sync, Size: step.Size, Objects: step.Objects}
	var err error
	for range settleAttempts {
		if err = r.sandbox.CaughtUp(ctx); err == nil {
			_, err = r.measure(ctx, step, subject.Stream)
		}
		if err == nil {
			r.settled = step.Objects
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.logf("  again: %v", err)
		select {
		case <-time.After(settlePause):
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("%w: %w", errNotServed, err)
}

// errNotServed fails a step. Other steps can continue.
var errNotServed = errors.New("the server does not serve the objects of the sandbox")

const (
	// settleAttempts limits the attempts of settle.
	settleAttempts = 50
	// settlePause is the pause between two attempts.
	settlePause = 2 * time.Second
)

func (r *runner) stopSandbox() error {
	if r.sandbox == nil {
		return nil
	}
	defer func() { r.sandbox, r.settled = nil, 0 }()
	return r.sandbox.Stop()
}
