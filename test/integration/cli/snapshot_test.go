package cli_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestSnapshotsAreLive compares the output for a snapshot of all types with the output for the cluster: every
// format, by type and by name, and discovery.
func TestSnapshotsAreLive(t *testing.T) {
	harness.InstallCRDs(t, harness.ReadManifests(t, testdata+"crds")...)
	harness.Apply(t, harness.ReadManifests(t, testdata+"objects")...)
	file := filepath.Join(t.TempDir(), "all.snapshot")
	var types []string
	for name := range strings.FieldsSeq(harness.Kubectl(t, "api-resources", "--verbs=list,watch",
		"-o", "name")) {
		// These types change continuously or have an ambiguous name.
		if !slices.Contains([]string{"endpoints", "events", "events.events.k8s.io",
			"leases.coordination.k8s.io"}, name) {
			types = append(types, name)
		}
	}
	commands := [][]string{
		append([]string{"dump", "-A", "-o", "table"}, types...),
		append([]string{"dump", "-A", "-o", "wide"}, types...),
		append([]string{"dump", "-A", "-o", "json", "--show-managed-fields"}, types...),
		append([]string{"dump", "-A", "-o", "jsonl"}, types...),
		append([]string{"dump", "-A", "-o", "yaml"}, types...),
		append([]string{"dump", "-A", "-o", "name"}, types...),
		{"dump", "*.crdcache.dev", "-A", "-o", "kyaml"},
		{"dump", "wl", "-n", "edge", "-o", "csv"},
		{"dump", "workloads", "-n", "edge", "-L", "app.kubernetes.io/name", "--show-labels"},
		{"dump", "routes.v1beta1.demo.crdcache.dev", "-A", "-o", "json"},
		{"dump", "workload/dns", "-n", "edge", "-o", "yaml"},
		{"dump", "flowschemas"},
		{"dump", "namespace/edge"},
		{"query", "workloads", "-A", "--where", ".spec.paused"},
		{"resources", "-o", "wide"},
		{"resources", "-o", "json"},
		{"tree", "workloads", "-n", "edge"},
		{"suggest", "workloads"},
	}
	run := func(args []string, more ...string) string {
		return runCrdcache(t, append(slices.Clone(args), more...)...)
	}
	// The server changes objects itself. Therefore the test repeats the snapshot until the objects before and
	// after it are equal.
	var live []string
	unchanged := false
	for attempt := 0; attempt < 10 && !unchanged; attempt++ {
		before := run(commands[2])
		run([]string{"snapshot", "save", file, "--all", "--quiet"})
		live = nil
		for _, args := range commands {
			live = append(live, run(args))
		}
		unchanged = before == run(commands[2])
	}
	if !unchanged {
		t.Fatal("all objects of the server have changed during the snapshot")
	}
	for i, args := range commands {
		got := run(args, "--from", file)
		if want, got := withoutAgeValues(live[i]), withoutAgeValues(got); want != got {
			t.Errorf("%q: the snapshot differs from the cluster\n%s", args, firstDifference(want, got))
		}
	}
	run([]string{"snapshot", "info", file, "--verify"})
	if got := run([]string{"snapshot", "diff", file, "live", "workloads", "crds", "namespaces",
		"services"}); !strings.HasSuffix(got, "exit code 0") {
		t.Errorf("snapshot diff reports unchanged objects: %s", got)
	}
}

// runCrdcache returns all output and the exit code of a command.
func runCrdcache(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Crdcache(t), args...)
	cmd.Env = []string{"KUBECONFIG=" + harness.Kubeconfig(t), "HOME=" + t.TempDir(), "LC_ALL=C.UTF-8"}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%sexit code %d", out, cmd.ProcessState.ExitCode())
}

// firstDifference shows the position at which two texts differ.
func firstDifference(want, got string) string {
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	from := max(at-150, 0)
	return "cluster:  " + want[from:min(at+250, len(want))] + "\nsnapshot: " + got[from:min(at+250, len(got))]
}
