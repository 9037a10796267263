package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/crdcache/crdcache/test/integration/bench/internal/experiment"
	"github.com/crdcache/crdcache/test/integration/bench/internal/report"
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

// taskTimeout limits the duration of a task.
const taskTimeout = 10 * time.Minute

// measure measures one subject, without retries.
func (r *runner) measure(ctx context.Context, step Step, name string) (measurement, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, taskTimeout, fmt.Errorf("it took more than %v", taskTimeout))
	defer cancel()
	task := experiment.Task{
		Experiment: step.Experiment, Size: step.Size, Objects: step.Objects, Subject: name,
		PerType: step.PerType, Idle: step.Idle.Duration, Kubeconfig: r.kubeconfig(), Events: step.Events,
		Budget: step.Budget.Duration, Command: r.commandOf(step, name),
	}
	if name == experiment.FileCount || name == experiment.ServedFiles {
		if err := r.writeLines(ctx); err != nil {
			return measurement{}, fmt.Errorf("writing the objects: %w", err)
		}
	}
	switch name {
	case experiment.ServedDump, experiment.ServedQuery, experiment.ServedIndex, experiment.ServedTable,
		experiment.ServedFiles:
		task.Serve = []string{r.options.crdcache, "serve", certificatesType, "-A", "--idle", "10m", "--config",
			"../../../testdata/indexes/cert-manager.yaml"}
	}
	if name == experiment.ServedFiles {
		task.Kubeconfig = r.linesPath() + ".kubeconfig"
		task.Serve = append(task.Serve, "--from", r.linesPath(), "--from", r.crds, "--write-kubeconfig",
			task.Kubeconfig)
	}
	if step.Experiment == experiment.SyncList {
		task.Env = []string{experiment.NoWatchList}
	}
	if subject, limit, ok := strings.Cut(name, "-limit-"); ok {
		task.Subject, task.Env = subject, []string{"GOMEMLIMIT=" + limit}
	}
	if subject, ok := strings.CutSuffix(name, "-next"); ok {
		task.Subject, task.Program = subject, r.options.next
	}
	if r.options.profiles != "" {
		task.Profile = filepath.Join(r.options.profiles, fmt.Sprintf("%s-%s-%d-%s", step.Experiment,
			step.Size, step.Objects, name))
	}
	switch {
	case step.Experiment == experiment.Restart:
		return r.measureRestart(ctx, step, task)
	case r.api != nil:
		return r.measureSynthetic(ctx, step, task)
	}
	outcome, err := startChild(ctx, task, func(ctx context.Context) error {
		return updateObjects(ctx, r.sandbox.Kubeconfig, step.Events, step.Rate)
	})
	return measurement{metrics: outcome.Metrics}, err
}

// The arguments of the subjects of the experiments Answers and QueryCount.
var (
	indexArguments = []string{"query", certificatesType, "-A", "--index", "secret=billing-admin-000001-00140-tls"}

	commandArguments = map[string][]string{
		experiment.VersionCommand: {"version"},
		experiment.ServedIndex:    indexArguments,
		experiment.ServedFiles:    indexArguments,
		experiment.ServedTable:    {"dump", certificatesType, "-n", "team-000"},
		experiment.LiveCount:      {"query", certificatesType, "-A", "--count"},
		experiment.FileCount:      {"query", certificatesType, "-A", "--count", "--from"}, // linesPath follows
	}
)

// linesPath is the path of the sandbox's objects as JSON lines.
func (r *runner) linesPath() string { return filepath.Join(r.sandbox.Dir, "certificates.jsonl") }

// writeLines writes the sandbox's objects, with all fields that the API server sends.
func (r *runner) writeLines(ctx context.Context) error {
	file, err := os.Create(r.linesPath())
	if err != nil {
		return err
	}
	dump := exec.CommandContext(ctx, r.options.crdcache, "dump", certificatesType, "-A", "-o", "jsonl",
		"--show-managed-fields", "--kubeconfig", r.sandbox.Kubeconfig, "--cache", "none")
	dump.Stdout, dump.Stderr = file, r.options.progress
	return errors.Join(dump.Run(), file.Close())
}

// commandOf returns the program and the arguments of a task, if the experiment needs a command.
func (r *runner) commandOf(step Step, name string) []string {
	var format string
	switch step.Experiment {
	case experiment.DumpJSON:
		format = "json"
	case experiment.DumpYAML:
		format = "yaml"
	case experiment.Answers, experiment.QueryCount:
		command := append([]string{r.options.crdcache}, commandArguments[name]...)
		if name == experiment.FileCount {
			command = append(command, r.linesPath())
		}
		return command
	default:
		return nil
	}
	verb := "dump"
	switch name {
	case experiment.Kubectl:
		return []string{r.options.kubectl, "get", certificatesType, "-A", "-o", format}
	case experiment.CrdcacheQuery, experiment.ServedQuery:
		verb = "query"
	}
	return []string{r.options.crdcache, verb, certificatesType, "-A", "-o", format}
}

// measureRestart measures a process that resumes from persisted objects, or starts without them.
func (r *runner) measureRestart(ctx context.Context, step Step,
	task experiment.Task) (_ measurement, err error) {
	if task.Subject == experiment.Unchanged || task.Subject == experiment.Changed {
		if task.Folder, err = os.MkdirTemp("", "kept-"); err != nil {
			return measurement{}, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(task.Folder)) }()
		earlier := task
		earlier.Profile = ""
		if _, err := startChild(ctx, earlier, nil); err != nil {
			return measurement{}, fmt.Errorf("the earlier process: %w", err)
		}
		task.Resumes = true
	}
	if task.Subject == experiment.Changed {
		err := updateObjects(ctx, r.sandbox.Kubeconfig, min(experiment.RestartChanges, step.Objects), 0)
		if err != nil {
			return measurement{}, err
		}
	}
	outcome, err := startChild(ctx, task, nil)
	return measurement{metrics: outcome.Metrics}, err
}
