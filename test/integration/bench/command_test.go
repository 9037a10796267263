package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/test/integration/bench/internal/experiment"
	"github.com/crdcache/crdcache/test/integration/bench/internal/report"
)

func TestCommand(t *testing.T) {
	tests := map[string]struct {
		args       []string
		code       int
		wantOutput string
	}{
		"usage":        {[]string{"extra"}, exitUsage, "extra"},
		"plan":         {[]string{"-plan"}, exitOK, "sync, 50000 small objects"},
		"no such file": {[]string{"-from", "testdata/none.json"}, exitFailed, "none.json"},
		"no step left": {[]string{"-plan", "-experiments", "sync", "-subjects", "kubectl"},
			exitFailed, "no step"},
		"no sandbox":      {[]string{"-sandbox", "testdata/none"}, exitFailed, "make sandbox"},
		"unknown subject": {[]string{"-plan", "-subjects", "nonsense"}, exitFailed, "client-go"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			if code := command(tt.args, &stderr); code != tt.code ||
				!strings.Contains(stderr.String(), tt.wantOutput) {
				t.Errorf("command() = %d with the output %q, want %d and %q", code, stderr.String(),
					tt.code, tt.wantOutput)
			}
		})
	}
}

// TestBrokenPromisesFailOnlyWithCI judges a file of results that misses a target and its margin. The command
// reports both, and fails only with -ci.
func TestBrokenPromisesFailOnlyWithCI(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	r := &report.Result{}
	for subject, cost := range map[string]float64{experiment.ClientGo: 1, experiment.Packed: 0.9} {
		r.Add(experiment.Sync, experiment.Small, 5_000, subject, map[string]float64{experiment.CPU: cost})
	}
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	var withoutCI, withCI bytes.Buffer
	if code := command([]string{"-from", path}, &withoutCI); code != exitOK ||
		!strings.Contains(withoutCI.String(), "measured 1.11×") {
		t.Errorf("command() = %d with the output %q, want the ratio and no failure", code, withoutCI.String())
	}
	if code := command([]string{"-ci", "-from", path}, &withCI); code != exitFailed ||
		!strings.Contains(withCI.String(), "\nmargin missed") {
		t.Errorf("command(-ci) = %d with the output %q, want a failure", code, withCI.String())
	}
}

// TestPlanOrder checks that steps without a sandbox come first, that each kind of sandbox is used in one run
// of steps, and that no step has fewer objects than the step before it in the same sandbox.
func TestPlanOrder(t *testing.T) {
	for name, plan := range readPlans() {
		type kind struct{ size, gates string }
		var used []kind
		objects := 0
		for _, s := range plan {
			if !s.needsSandbox() {
				if len(used) > 0 {
					t.Errorf("%s: step %s is after a step with a sandbox", name, s)
				}
				continue
			}
			k := kind{s.Size, s.Gates}
			if len(used) == 0 || used[len(used)-1] != k {
				if slices.Contains(used, k) {
					t.Errorf("%s: step %s uses a sandbox that was stopped", name, s)
				}
				used, objects = append(used, k), 0
			}
			if s.countInSandbox() < objects {
				t.Errorf("%s: step %s has fewer objects than the %d of the step before", name, s, objects)
			}
			objects = s.countInSandbox()
		}
	}
}

// countInSandbox returns the number of objects that the sandbox must have.
func (s Step) countInSandbox() int {
	switch {
	case s.needsSyntheticServer():
		return s.recordedCount()
	case !s.needsSandbox():
		return 0
	}
	return s.Objects
}
