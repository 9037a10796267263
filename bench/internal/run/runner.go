package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/report"
)

// Options are the options of a run.
type Options struct {
	// Sandbox, Kubectl and Crdcache are the paths of programs.
	Sandbox, Kubectl, Crdcache string
	// Profiles is a folder for CPU profiles of each experiment and subject. It is optional. Profiling
	// increases the measured times.
	Profiles string
	// Progress receives a line for each step and each measurement.
	Progress io.Writer
}

// Run runs the experiments of the plan. A failed measurement becomes a failure in the result. An error, such
// as an interrupt or a broken sandbox, ends the run. Run always returns the measured figures.
func (p Plan) Run(ctx context.Context, o Options) (*report.Result, error) {
	r := &runner{options: o, result: &report.Result{Started: time.Now().UTC(), Machine: report.ThisMachine()}}
	quiet := listen()
	quiet.warn(r.logf)
	err := r.all(ctx, p)
	took := time.Since(r.result.Started)
	r.result.Took, r.result.Noise = report.Duration(took.Round(time.Second)), quiet.noise(took)
	return r.result, err
}

// runner is the state of Plan.Run.
type runner struct {
	options Options
	result  *report.Result
	crds    string
	sandbox *sandbox
	local   *localServer  // set during steps that do not use the sandbox
	api     *syntheticAPI // the handler of local, except for many types
	size    string        // of the objects in sandbox
	gates   string        // of its API server
	settled int           // number of objects that the server is known to serve
}

func (r *runner) all(ctx context.Context, p Plan) (err error) {
	// Check the sandbox first, although steps without a sandbox run before the others.
	if slices.ContainsFunc(p, func(s Step) bool { return s.needsSandbox() }) {
		if err := checkSandbox(r.options.Sandbox); err != nil {
			return err
		}
	}
	if r.crds, err = certManagerCRDs(ctx); err != nil {
		return err
	}
	if err := r.versions(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stopSandbox()) }()
	for i, step := range p {
		r.logf("[%d/%d] %s", i+1, len(p), step)
		if step.Experiment == experiment.Types {
			if err := r.manyTypes(ctx, step); err != nil {
				return err
			}
			continue
		}
		if step.needsSyntheticServer() {
			if err := r.measureOnSyntheticServer(ctx, step); err != nil {
				return err
			}
			continue
		}
		if err := r.fill(ctx, step); errors.Is(err, errNotServed) && ctx.Err() == nil {
			r.result.Failures = append(r.result.Failures, fmt.Sprintf("%s: %v", step, err))
			r.logf("  FAILED %v", err)
			continue
		} else if err != nil {
			return err
		}
		if err := r.step(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// manyTypes measures a step of many types with its own server.
func (r *runner) manyTypes(ctx context.Context, step Step) (err error) {
	if r.local, err = startTypesServer(step.Objects, step.PerType); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, r.local.Stop())
		r.local = nil
	}()
	return r.step(ctx, step)
}

// kubeconfig returns the path of the measured server's kubeconfig.
func (r *runner) kubeconfig() string {
	if r.local != nil {
		return r.local.Kubeconfig()
	}
	return r.sandbox.Kubeconfig()
}

// step measures all subjects of a step. Each round measures all subjects, so that noise affects all of them.
// Quantiles cover the updates of all rounds.
func (r *runner) step(ctx context.Context, step Step) error {
	pooled := map[string][]time.Duration{}
	for round := range step.Rounds {
		for _, name := range step.Subjects {
			measured, err := r.measureWithRetries(ctx, step, name)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil:
				r.result.Failures = append(r.result.Failures, err.Error())
				r.logf("  FAILED %v", err)
				continue
			}
			r.result.Add(step.Experiment, step.Size, step.Objects, name, measured.metrics)
			pooled[name] = append(pooled[name], measured.latencies...)
			r.result.Pool(step.Experiment, step.Size, step.Objects, name, quantiles(pooled[name]))
			r.logf("  %d/%d %-20s %s", round+1, step.Rounds, name, summary(measured.metrics))
		}
	}
	return nil
}

func (r *runner) logf(format string, arguments ...any) {
	fmt.Fprintf(r.options.Progress, strings.TrimRight(format, "\n")+"\n", arguments...)
}

// summary formats metrics on one line for the progress.
func summary(metrics map[string]float64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		parts = append(parts, fmt.Sprintf("%s=%.4g", name, metrics[name]))
	}
	return strings.Join(parts, " ")
}

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

// versions determines the versions of the measured software.
func (r *runner) versions(ctx context.Context) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return fmt.Errorf("the program was built without module support")
	}
	for _, module := range info.Deps {
		switch module.Path {
		case "k8s.io/client-go":
			r.result.Machine.ClientGo = module.Version
		case "sigs.k8s.io/controller-runtime":
			r.result.Machine.ControllerRuntime = module.Version
		}
	}
	// A copy without git has no revision, which is permitted.
	if revision, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12",
		"HEAD").Output(); err == nil {
		r.result.Machine.Commit = strings.TrimSpace(string(revision))
		if changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no",
			"--", "..").Output(); err == nil && len(changed) > 0 {
			r.result.Machine.Commit += "+"
		}
	}
	return nil
}
