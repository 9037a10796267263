package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/crdcache/crdcache/test/integration/bench/internal/experiment"
	"github.com/crdcache/crdcache/test/integration/bench/internal/report"
)

// runnerOptions are the options of a run.
type runnerOptions struct {
	// sandbox, kubectl, crdcache and next are the paths of programs. next is this program, linked with the
	// next version of client-go.
	sandbox, kubectl, crdcache, next string
	// profiles is a folder for CPU profiles of each experiment and subject, and for heap profiles of many
	// types. It is optional. Profiling increases the measured times.
	profiles string
	// progress receives a line for each step and each measurement.
	progress io.Writer
}

// Run runs the experiments of the plan. A failed measurement becomes a failure in the result. An error, such
// as an interrupt or a broken sandbox, ends the run. Run always returns the measured figures.
func (p Plan) Run(ctx context.Context, o runnerOptions) (*report.Result, error) {
	r := &runner{options: o, result: &report.Result{Started: time.Now().UTC(), Machine: report.ThisMachine()}}
	r.logf("the load average is %s; above 0.5, figures are worse than they could be", r.result.Machine.LoadAverage)
	err := r.runSteps(ctx, p)
	r.result.Took = time.Since(r.result.Started).Round(time.Second).String()
	return r.result, err
}

// runner is the state of Plan.Run.
type runner struct {
	options runnerOptions
	result  *report.Result
	crds    string
	sandbox *sandbox
	local   *localServer  // set during steps that do not use the sandbox
	api     *syntheticAPI // set during steps that need it
}

func (r *runner) runSteps(ctx context.Context, p Plan) (err error) {
	// Check the sandbox first, although steps without a sandbox run before the others.
	if slices.ContainsFunc(p, func(s Step) bool { return s.needsSandbox() }) {
		if err := checkSandbox(r.options.sandbox); err != nil {
			return err
		}
	}
	if r.crds, err = certManagerCRDs(ctx); err != nil {
		return err
	}
	if err := r.recordVersions(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stopSandbox()) }()
	for i, step := range p {
		r.logf("[%d/%d] %s", i+1, len(p), step)
		err := r.runStep(ctx, step)
		if errors.Is(err, errNotServed) && ctx.Err() == nil {
			r.result.Failures = append(r.result.Failures, fmt.Sprintf("%s: %v", step, err))
			r.logf("  FAILED %v", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// runStep measures a step with the server that it needs.
func (r *runner) runStep(ctx context.Context, step Step) error {
	switch {
	case step.Size == experiment.Pods:
		return r.measureCopies(ctx, step, podLines(), "/api/v1/pods")
	case step.hasClusters():
		handler, err := clustersHandler(step.Objects, step.PerType)
		if err != nil {
			return err
		}
		return r.measureLocally(ctx, step, handler)
	case step.Experiment == experiment.Controllers:
		return r.measureControllers(ctx, step)
	case !step.needsSandbox():
		handler, err := typesHandler(step.Objects, step.PerType, smallFormat)
		if err != nil {
			return err
		}
		return r.measureLocally(ctx, step, handler)
	case step.needsSyntheticServer():
		return r.measureOnSyntheticServer(ctx, step)
	}
	if err := r.prepareSandbox(ctx, step); err != nil {
		return err
	}
	return r.measureStep(ctx, step)
}

// measureLocally measures a step with a server in this process.
func (r *runner) measureLocally(ctx context.Context, step Step, handler http.Handler) (err error) {
	if r.local, err = startLocalServer(handler); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, r.local.Stop())
		r.local = nil
	}()
	return r.measureStep(ctx, step)
}

// kubeconfig returns the path of the measured server's kubeconfig.
func (r *runner) kubeconfig() string {
	if r.local != nil {
		return r.local.kubeconfig
	}
	return r.sandbox.Kubeconfig
}

// measureStep measures all subjects of a step. Each round measures every subject, so that noise affects all
// of them alike. Quantiles cover the updates of all rounds.
func (r *runner) measureStep(ctx context.Context, step Step) error {
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
	fmt.Fprintf(r.options.progress, strings.TrimRight(format, "\n")+"\n", arguments...)
}

// summary formats metrics on one line for the progress.
func summary(metrics map[string]float64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		parts = append(parts, fmt.Sprintf("%s=%.4g", name, metrics[name]))
	}
	return strings.Join(parts, " ")
}

// recordVersions stores the versions of the compared libraries and of crdcache in the result.
func (r *runner) recordVersions(ctx context.Context) error {
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
