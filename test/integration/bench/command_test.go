package main

import (
	"bytes"
	"path/filepath"
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
