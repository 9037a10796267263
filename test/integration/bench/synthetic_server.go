package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/crdcache/crdcache/test/integration/bench/internal/experiment"
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
	if err := r.prepareSandbox(ctx, recorded); err != nil {
		return err
	}
	lines, err := r.recordWatchList(ctx)
	if err != nil {
		return err
	}
	return r.measureCopies(ctx, step, lines, certificatesPath)
}

// measureCopies measures a step against a synthetic server with step.Objects objects at a path, which are
// copies of the recorded ones. Operators also own as many objects of each of their types.
func (r *runner) measureCopies(ctx context.Context, step Step, lines []byte, path string) (err error) {
	if r.api, err = newSyntheticAPI(lines, path, step.Objects); err != nil {
		return err
	}
	defer func() { r.api = nil }()
	server := http.NewServeMux()
	server.Handle("/", r.api)
	if step.Experiment == experiment.Operator {
		r.api.keepGenerations = true
		for _, kind := range experiment.OwnedKinds {
			path := "/apis/cert-manager.io/v1/" + experiment.ResourceOf(kind)
			api, err := newSyntheticAPI(ownedObjects(lines, kind), path, step.Objects)
			if err != nil {
				return err
			}
			server.Handle(path, api)
		}
	}
	return r.measureLocally(ctx, step, server)
}

// recordWatchList reads the watch-list of the sandbox.
func (r *runner) recordWatchList(ctx context.Context) ([]byte, error) {
	client, err := newClient(r.sandbox.Kubeconfig)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("it took more than a minute"))
	defer cancel()
	body, err := client.Get().AbsPath(certificatesPath).Param("watch", "true").
		Param("sendInitialEvents", "true").Param("resourceVersionMatch", "NotOlderThan").
		Param("allowWatchBookmarks", "true").Stream(ctx)
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

// measureSynthetic makes a child receive the updates of the synthetic server, and then relist if the task
// requires it.
func (r *runner) measureSynthetic(ctx context.Context, step Step, task experiment.Task) (measurement, error) {
	task.Last = r.api.recording.keyOf(step.Objects - 1)
	updated := false
	var sent map[string]time.Time
	outcome, err := startChild(ctx, task, func(ctx context.Context) (err error) {
		switch {
		case !updated:
			updated = true
			sent, err = r.api.update(ctx, step.Events, step.Rate)
		case step.Experiment == experiment.Controllers:
			_, err = r.api.update(ctx, step.Events, step.Rate)
		default:
			r.api.expire()
		}
		return err
	})
	if err != nil {
		return measurement{}, err
	}
	m := measurement{metrics: outcome.Metrics}
	for key, before := range sent {
		after, ok := outcome.Seen[key]
		if !ok {
			return measurement{}, fmt.Errorf("%s of %s: the update of %s was not seen", task.Experiment,
				task.Subject, key)
		}
		m.latencies = append(m.latencies, after.Sub(before))
	}
	return m, nil
}
