package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

func managedFields(entries ...[3]string) []any {
	var all []any
	for _, e := range entries {
		all = append(all, map[string]any{
			"manager": e[0], "subresource": e[1], "operation": "Update", "apiVersion": "example.com/v1",
			"time": e[2], "fieldsType": "FieldsV1", "fieldsV1": map[string]any{},
		})
	}
	return all
}

// TestWatchPrintsTimesAndManagers verifies that the time and the manager of each event are printed, without
// managed fields.
func TestWatchPrintsTimesAndManagers(t *testing.T) {
	server := newCluster(t)
	first := newObject("Gizmo", "web", "a", map[string]any{"color": "red"})
	first.Object["metadata"].(map[string]any)["managedFields"] = managedFields([3]string{"helm", "",
		"2026-01-01T00:00:00Z"}, [3]string{"operator", "status", "2026-01-02T00:00:00Z"})
	server.Create(t, gizmos, first)
	const stamp = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`

	table := watchGizmos(t, "gizmos", "-n", "web", "--timestamps", "--managers", "-s", server.URL)
	lines := watchGizmos(t, "gizmos", "-n", "web", "--timestamps", "--managers", "-o", "json",
		"-s", server.URL)
	expect := func(got, pattern string) {
		t.Helper()
		if !regexp.MustCompile("^" + pattern + "$").MatchString(got) {
			t.Errorf("the watch printed %q, want %s", got, pattern)
		}
	}
	expect(table.nextOutput(), "EVENT NAME COLOR MANAGER")
	expect(table.nextOutput(), stamp+" ADDED a red operator/status")
	if got := lines.nextOutput(); strings.Contains(got, "managedFields") {
		t.Errorf("the line %s has managed fields", got)
	} else {
		expect(got, `\{"manager":"operator/status",.*"time":"`+stamp+`","type":"ADDED"\}`)
	}
	second := first.DeepCopy()
	second.Object["spec"] = map[string]any{"color": "blue"}
	second.Object["metadata"].(map[string]any)["managedFields"] = managedFields([3]string{"helm", "",
		"2026-01-01T00:00:00Z"},
		[3]string{"operator", "status", "2026-01-02T00:00:00Z"}, [3]string{"kubectl-edit", "",
			"2026-01-03T00:00:00Z"})
	update(t, server, second)
	expect(table.nextOutput(), stamp+" MODIFIED a blue kubectl-edit")
	expect(lines.nextOutput(), `\{"manager":"kubectl-edit",.*"type":"MODIFIED"\}`)
	table.stop()
	lines.stop()
	if code := <-table.code; code != cli.ExitInterrupted {
		t.Errorf("exit code %d, want %d", code, cli.ExitInterrupted)
	}
	<-lines.code
}

// TestWatchProposesToWait verifies that the error for a missing type suggests --wait.
func TestWatchProposesToWait(t *testing.T) {
	server := newCluster(t)
	r := crdcache(t, "watch", "sprockets.factory.io", "-s", server.URL)
	if r.code != cli.ExitFailed || !strings.HasSuffix(r.errOut,
		"; to watch it once it is installed, add --wait\n") || strings.Count(r.errOut, "\n") != 1 {
		t.Errorf("exit code %d, want %d; stderr %q", r.code, cli.ExitFailed, r.errOut)
	}
	if r := crdcache(t, "watch", "gizmoss", "-s", server.URL); strings.Contains(r.errOut, "--wait") {
		t.Errorf("stderr is %q, want no proposal of --wait for an unknown type", r.errOut)
	}
	if r := crdcache(t, "watch", "gizmos", "-o", "name", "--timestamps", "-s",
		server.URL); r.code != cli.ExitUsage {
		t.Errorf("exit code %d, want %d", r.code, cli.ExitUsage)
	}
}

// TestWatchDiffOfSecrets verifies that the values of Secrets are redacted.
func TestWatchDiffOfSecrets(t *testing.T) {
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	server := apitest.New(t, apitest.Type{GVR: secrets, Kind: "Secret", Singular: "secret", Namespaced: true})
	secret := func(password string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "a", "namespace": "web"},
			"data": map[string]any{"password": password},
		}}
	}
	server.Create(t, secrets, secret("aHVudGVyMg=="))
	lines := watchGizmos(t, "secrets", "-A", "--diff", "--no-headers", "-s", server.URL)
	lines.nextOutput()
	server.Update(t, secrets, secret("Y29ycmVjdA=="))
	lines.nextOutput()
	if got := lines.nextOutput(); !strings.HasPrefix(got, `~ .data.password: "redacted-`) ||
		strings.Count(got, "redacted-") != 2 {
		t.Errorf("the difference is %q, want redacted values", got)
	}
	lines.interrupt()
}
