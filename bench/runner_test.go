package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/bench/internal/experiment"
)

// TestCommandOf checks that both programs get equivalent arguments.
func TestCommandOf(t *testing.T) {
	r := &runner{options: runnerOptions{kubectl: "k", crdcache: "c"}}
	tests := []struct {
		experiment, subject string
		want                []string
	}{
		{experiment.DumpJSON, experiment.Kubectl, []string{"k", "get", "certificates.cert-manager.io", "-A",
			"-o", "json"}},
		{experiment.DumpJSON, experiment.Crdcache, []string{"c", "dump", "certificates.cert-manager.io", "-A",
			"-o", "json"}},
		{experiment.DumpJSON, experiment.ServedQuery, []string{"c", "query", "certificates.cert-manager.io",
			"-A", "-o", "json"}},
		{experiment.DumpYAML, experiment.Crdcache, []string{"c", "dump", "certificates.cert-manager.io", "-A",
			"-o", "yaml"}},
		{experiment.Sync, experiment.Crdcache, nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, r.commandOf(Step{Experiment: tt.experiment}, tt.subject)); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", tt.experiment, tt.subject, diff)
		}
	}
}

func TestSummary(t *testing.T) {
	if got := summary(map[string]float64{"wall_s": 1.23456, "cpu_s": 2}); got != "cpu_s=2 wall_s=1.235" {
		t.Errorf("summary() = %q, want the sorted metrics, rounded", got)
	}
}
