package run

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/crdcache/crdcache/bench/internal/experiment"
)

// restart measures a process that resumes from persisted objects, or starts without them.
func (r *runner) restart(ctx context.Context, step Step, task experiment.Task) (_ measurement, err error) {
	if task.Subject == experiment.Unchanged || task.Subject == experiment.Changed {
		if task.Folder, err = os.MkdirTemp("", "kept-"); err != nil {
			return measurement{}, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(task.Folder)) }()
		earlier := task
		earlier.Profile, earlier.HeapProfile = "", ""
		if _, err := startChild(ctx, earlier, nil); err != nil {
			return measurement{}, fmt.Errorf("the earlier process: %w", err)
		}
		task.Resumes = true
	}
	if task.Subject == experiment.Changed {
		client, err := r.sandbox.Client()
		if err != nil {
			return measurement{}, err
		}
		if _, err := updateObjects(ctx, client, min(experiment.RestartChanges, step.Objects), 0); err != nil {
			return measurement{}, err
		}
	}
	outcome, err := startChild(ctx, task, nil)
	return measurement{metrics: outcome.Metrics}, err
}
