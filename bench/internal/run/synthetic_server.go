package run

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/crdcache/crdcache/bench/internal/experiment"
)

// recordedObjects is the maximum number of recorded objects.
const recordedObjects = 5_000

// recordedCount returns the number of objects that the step needs in the sandbox.
func (s Step) recordedCount() int { return min(s.Objects, recordedObjects) }

// measureOnSyntheticServer measures a step against the synthetic server, after recording the objects that the
// server copies from the sandbox.
func (r *runner) measureOnSyntheticServer(ctx context.Context, step Step) error {
	recorded := step
	recorded.Experiment, recorded.Objects = experiment.Sync, step.recordedCount()
	if err := r.fill(ctx, recorded); err != nil {
		return err
	}
	lines, err := r.record(ctx)
	if err != nil {
		return err
	}
	return r.measureCopies(ctx, step, lines)
}

// measureCopies measures a step against a synthetic server with step.Objects objects, which are copies of the
// recorded ones. Operators also own as many objects of each of their types.
func (r *runner) measureCopies(ctx context.Context, step Step, lines []byte) (err error) {
	if r.api, err = newAPI(lines, certificatesPath, step.Objects); err != nil {
		return err
	}
	server := http.NewServeMux()
	server.Handle("/", r.api)
	if step.Experiment == experiment.Operator {
		r.api.KeepGenerations = true
		for _, kind := range experiment.OwnedKinds {
			path := "/apis/cert-manager.io/v1/" + experiment.ResourceOf(kind)
			api, err := newAPI(owned(lines, kind), path, step.Objects)
			if err != nil {
				return err
			}
			server.Handle(path, api)
		}
	}
	if r.local, err = startLocalServer(server); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, r.local.Stop())
		r.local, r.api = nil, nil
	}()
	return r.step(ctx, step)
}

func newAPI(lines []byte, path string, count int) (*syntheticAPI, error) {
	recording, err := recordAPI(lines)
	if err != nil {
		return nil, err
	}
	return newSyntheticAPI(recording, path, count)
}

// record reads the watch-list of the sandbox.
func (r *runner) record(ctx context.Context) ([]byte, error) {
	client, err := r.sandbox.Client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, recordTimeout,
		fmt.Errorf("it took more than %v", recordTimeout))
	defer cancel()
	body, err := client.Get().AbsPath(certificatesPath).Param("watch", "true").Param("sendInitialEvents",
		"true").
		Param("resourceVersionMatch", "NotOlderThan").Param("allowWatchBookmarks", "true").Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("recording a watch-list: %w", err)
	}
	defer body.Close()
	var recorded []byte
	for lines := bufio.NewReader(body); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("recording a watch-list: %w", err)
		}
		if bytes.HasPrefix(line, []byte(`{"type":"BOOKMARK"`)) {
			return recorded, nil
		}
		recorded = append(recorded, line...)
	}
}

// recordTimeout limits the recording generously.
const recordTimeout = time.Minute

// measureSynthetic makes a child receive the updates of the synthetic server, and then relist if the task
// requires it.
func (r *runner) measureSynthetic(ctx context.Context, step Step, task experiment.Task) (measurement, error) {
	task.Last = r.api.Key(step.Objects - 1)
	var sent map[string]time.Time
	outcome, err := startChild(ctx, task, func(ctx context.Context) (err error) {
		if sent == nil {
			sent, err = r.api.Update(ctx, step.Events, step.Rate)
			return err
		}
		r.api.Expire()
		return nil
	})
	if err != nil {
		return measurement{}, err
	}
	return withLatencies(task, outcome, sent)
}
