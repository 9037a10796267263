package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/crdcache/crdcache/bench/internal/box"
	"github.com/crdcache/crdcache/bench/internal/child"
	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/measure"
	"github.com/crdcache/crdcache/bench/internal/plan"
	"github.com/crdcache/crdcache/bench/internal/result"
	"github.com/crdcache/crdcache/bench/internal/writer"
)

// Options say with what to run.
type Options struct {
	// Sandbox, Kubectl and Crdcache are the paths of programs.
	Sandbox, Kubectl, Crdcache string
	// Profiles is a folder for a processor profile of each experiment and subject; empty means none. What is
	// profiled takes a little longer.
	Profiles string
	// Progress gets a line for each step and each measurement.
	Progress io.Writer
}

// Run makes the experiments of a plan. What can't be measured becomes a failure of the result; the error is for
// what ends the run: an interrupt, or a sandbox that does not work. What was measured until then is returned in
// any case.
func Run(ctx context.Context, p plan.Plan, o Options) (*result.Result, error) {
	r := &run{options: o, result: &result.Result{Started: time.Now().UTC(), Machine: result.ThisMachine()}}
	err := r.all(ctx, p)
	r.result.Took = result.Duration(time.Since(r.result.Started).Round(time.Second))
	return r.result, err
}

// run is the state of Run.
type run struct {
	options Options
	result  *result.Result
	crds    string
	box     *box.Box
	size    string // of the objects in box
}

func (r *run) all(ctx context.Context, p plan.Plan) (err error) {
	if r.crds, err = box.CertManagerCRDs(ctx); err != nil {
		return err
	}
	if err := r.versions(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stopBox()) }()
	for i, step := range p {
		r.say("[%d/%d] %s", i+1, len(p), step)
		if err := r.fill(ctx, step); err != nil {
			return err
		}
		if err := r.step(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// fill sees to a sandbox with the objects of a step.
func (r *run) fill(ctx context.Context, step plan.Step) error {
	if r.box != nil && r.size != step.Size {
		if err := r.stopBox(); err != nil {
			return err
		}
	}
	if r.box == nil {
		started, err := box.Start(ctx, r.options.Sandbox, r.crds, step.Size)
		if err != nil {
			return err
		}
		r.box, r.size = started, step.Size
		if r.result.Machine.Kubernetes, err = r.box.Version(ctx); err != nil {
			return err
		}
	}
	return r.box.Fill(ctx, step.Objects)
}

func (r *run) stopBox() error {
	if r.box == nil {
		return nil
	}
	defer func() { r.box = nil }()
	return r.box.Stop()
}

// step measures all subjects of a step. Each round goes through all of them, so that a busy moment of the
// machine does not hit one alone.
func (r *run) step(ctx context.Context, step plan.Step) error {
	for round := range step.Rounds {
		for _, name := range step.Subjects {
			metrics, err := r.measure(ctx, step, name)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil:
				r.result.Failures = append(r.result.Failures, err.Error())
				r.say("  FAILED %v", err)
				continue
			}
			r.result.Add(step.Experiment, step.Size, step.Objects, name, metrics)
			r.say("  %d/%d %-20s %s", round+1, step.Rounds, name, summary(metrics))
		}
	}
	return nil
}

// taskTimeout is far more than any task takes.
const taskTimeout = 5 * time.Minute

// measure measures one subject once.
func (r *run) measure(ctx context.Context, step plan.Step, name string) (map[string]float64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, taskTimeout, fmt.Errorf("it took more than %v", taskTimeout))
	defer cancel()
	task := child.Task{
		Experiment: step.Experiment, Size: step.Size, Objects: step.Objects, Subject: name,
		Kubeconfig: r.box.Kubeconfig(), Events: step.Events, Budget: step.Budget, Command: r.command(step, name),
	}
	if step.Experiment == experiment.SyncList {
		task.Env = []string{experiment.NoWatchList}
	}
	if r.options.Profiles != "" {
		task.Profile = filepath.Join(r.options.Profiles, fmt.Sprintf("%s-%s-%d-%s.pprof", step.Experiment, step.Size, step.Objects, name))
	}
	if step.Events == 0 {
		outcome, err := child.Start(ctx, task, nil)
		return outcome.Metrics, err
	}
	client, err := r.box.Client()
	if err != nil {
		return nil, err
	}
	var sent map[string]time.Time
	outcome, err := child.Start(ctx, task, func(ctx context.Context) (err error) {
		sent, err = writer.Update(ctx, client, step.Events, step.Rate)
		return err
	})
	if err != nil {
		return nil, err
	}
	latencies, err := writer.Latencies(sent, outcome.Seen)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", step.Experiment, name, err)
	}
	outcome.Metrics[experiment.LatencyP50] = measure.Quantile(latencies, 0.50).Seconds() * 1e3
	outcome.Metrics[experiment.LatencyP99] = measure.Quantile(latencies, 0.99).Seconds() * 1e3
	return outcome.Metrics, nil
}

// command is what a task has to run, in experiments that run something.
func (r *run) command(step plan.Step, name string) []string {
	var format string
	switch step.Experiment {
	case experiment.DumpJSON:
		format = "json"
	case experiment.DumpYAML:
		format = "yaml"
	default:
		return nil
	}
	if name == experiment.Kubectl {
		return []string{r.options.Kubectl, "get", "certificates.cert-manager.io", "-A", "-o", format}
	}
	return []string{r.options.Crdcache, "dump", "certificates.cert-manager.io", "-A", "-o", format}
}

func (r *run) say(format string, arguments ...any) {
	fmt.Fprintf(r.options.Progress, strings.TrimRight(format, "\n")+"\n", arguments...)
}
