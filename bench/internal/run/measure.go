package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/report"
)

// maxAttempts is the maximum number of tries for one measurement.
const maxAttempts = 5

// measurement is the result of one round for one subject. latencies has the latency of each update.
type measurement struct {
	metrics   map[string]float64
	latencies []time.Duration
}

// quantiles returns the latency metrics, in milliseconds.
func quantiles(latencies []time.Duration) map[string]float64 {
	figures := map[string]float64{}
	if len(latencies) == 0 {
		return figures
	}
	for metric, q := range experiment.Latencies() {
		figures[metric] = report.Quantile(latencies, q).Seconds() * 1e3
	}
	return figures
}

// measureWithRetries measures one subject. It retries after a failure, because a server on a busy machine may
// close connections early.
func (r *runner) measureWithRetries(ctx context.Context, step Step,
	subjectName string) (m measurement, err error) {
	for n := range maxAttempts {
		if m, err = r.measure(ctx, step, subjectName); err == nil || ctx.Err() != nil {
			break
		}
		if n < maxAttempts-1 {
			r.logf("  again, %s could not be measured: %v", subjectName, err)
		}
	}
	maps.Copy(m.metrics, quantiles(m.latencies))
	return m, err
}

// taskTimeout limits a task generously.
const taskTimeout = 10 * time.Minute

// measure measures one subject, without retries.
func (r *runner) measure(ctx context.Context, step Step, name string) (measurement, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, taskTimeout, fmt.Errorf("it took more than %v", taskTimeout))
	defer cancel()
	task := experiment.Task{
		Experiment: step.Experiment, Size: step.Size, Objects: step.Objects, Subject: name,
		PerType: step.PerType, Idle: step.Idle, Kubeconfig: r.kubeconfig(), Events: step.Events,
		Budget: step.Budget, Command: r.command(step, name),
	}
	r.setServeCommand(&task)
	if step.Experiment == experiment.SyncList {
		task.Env = []string{experiment.NoWatchList}
	}
	if r.options.Profiles != "" {
		task.Profile = filepath.Join(r.options.Profiles, fmt.Sprintf("%s-%s-%d-%s.pprof", step.Experiment,
			step.Size, step.Objects, name))
	}
	if r.options.Profiles != "" {
		task.HeapProfile = strings.TrimSuffix(task.Profile, ".pprof") + "-heap.pprof"
	}
	switch {
	case step.Experiment == experiment.Restart:
		return r.restart(ctx, step, task)
	case r.api != nil && step.Events > 0:
		return r.measureSynthetic(ctx, step, task)
	case step.Events == 0:
		outcome, err := startChild(ctx, task, nil)
		return measurement{metrics: outcome.Metrics}, err
	case step.Rate == 0:
		return r.burst(ctx, step, task)
	default:
		return r.measureUpdates(ctx, step, task)
	}
}

// measureUpdates changes objects while the child receives the updates.
func (r *runner) measureUpdates(ctx context.Context, step Step, task experiment.Task) (measurement, error) {
	client, err := r.sandbox.Client()
	if err != nil {
		return measurement{}, err
	}
	var sent map[string]time.Time
	outcome, err := startChild(ctx, task, func(ctx context.Context) (err error) {
		sent, err = updateObjects(ctx, client, step.Events, step.Rate)
		return err
	})
	if err != nil {
		return measurement{}, err
	}
	return withLatencies(task, outcome, sent)
}

// burst changes objects and then releases all updates to the child.
func (r *runner) burst(ctx context.Context, step Step, task experiment.Task) (_ measurement, err error) {
	client, err := r.sandbox.Client()
	if err != nil {
		return measurement{}, err
	}
	g, err := startGate(r.sandbox.Kubeconfig())
	if err != nil {
		return measurement{}, err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	task.Kubeconfig = g.Kubeconfig()
	outcome, err := startChild(ctx, task, func(ctx context.Context) error {
		g.Hold()
		defer g.Open()
		if _, err := updateObjects(ctx, client, step.Events, step.Rate); err != nil {
			return err
		}
		return g.Wait(ctx, step.Events)
	})
	return measurement{metrics: outcome.Metrics}, err
}

// withLatencies returns the measurement of a child that has received the updates, with the latencies since
// sent.
func withLatencies(task experiment.Task, outcome experiment.Outcome,
	sent map[string]time.Time) (measurement, error) {
	latencies, err := latenciesOf(sent, outcome.Seen)
	if err != nil {
		return measurement{}, fmt.Errorf("%s of %s: %w", task.Experiment, task.Subject, err)
	}
	return measurement{metrics: outcome.Metrics, latencies: latencies}, nil
}

// command returns the command of a task, if the experiment needs one.
func (r *runner) command(step Step, name string) []string {
	var format string
	switch step.Experiment {
	case experiment.DumpJSON:
		format = "json"
	case experiment.DumpYAML:
		format = "yaml"
	default:
		return nil
	}
	verb := "dump"
	switch name {
	case experiment.Kubectl:
		return []string{r.options.Kubectl, "get", certificatesType, "-A", "-o", format}
	case experiment.OursQuery, experiment.ServedQuery:
		verb = "query"
	}
	return []string{r.options.Crdcache, verb, certificatesType, "-A", "-o", format}
}

// setServeCommand sets the command that starts a cache server, if the task needs one.
func (r *runner) setServeCommand(task *experiment.Task) {
	if task.Subject == experiment.ServedDump || task.Subject == experiment.ServedQuery {
		task.Serve = []string{r.options.Crdcache, "serve", certificatesType, "-A", "--detach"}
	}
}
