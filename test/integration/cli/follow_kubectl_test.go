package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// runningCommand is a command that prints events until it is interrupted.
type runningCommand struct {
	cmd    *exec.Cmd
	mu     sync.Mutex
	stdout bytes.Buffer
	stderr bytes.Buffer
}

// sink writes to one of the buffers under the lock.
type sink struct {
	*runningCommand
	buffer *bytes.Buffer
}

func (s sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buffer.Write(p)
}

func (f *runningCommand) stdoutText() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stdout.String()
}

// startCommand starts a program and kills it at the end of the test.
func startCommand(t *testing.T, program string, args ...string) *runningCommand {
	t.Helper()
	f := &runningCommand{cmd: newCommand(t, program, args...)}
	f.cmd.Stdout, f.cmd.Stderr = sink{f, &f.stdout}, sink{f, &f.stderr}
	must(t, f.cmd.Start())
	return f
}

// awaitOutput waits until stdout contains a text, and ends with a whole line: kubectl writes each cell alone.
func (f *runningCommand) awaitOutput(t *testing.T, text string) {
	t.Helper()
	harness.Eventually(t, func(context.Context) error {
		if output := f.stdoutText(); strings.Contains(output, text) && strings.HasSuffix(output, "\n") {
			return nil
		}
		return fmt.Errorf("no %q in the output of %q:\n%s%s", text, f.cmd.Args, f.stdoutText(), f.stderrText())
	})
}

// interrupt ends the command and returns its exit code.
func (f *runningCommand) interrupt(t *testing.T) int {
	t.Helper()
	must(t, f.cmd.Process.Signal(os.Interrupt))
	_ = f.cmd.Wait() // the exit code is the result
	return f.cmd.ProcessState.ExitCode()
}

// manifest is an object with placeholders for its namespace and name.
type manifest struct{ text, status string }

// manifestsByType has types whose rows kubectl computes, each with an object and a status that its row shows.
var manifestsByType = map[string]manifest{
	"configmaps": {
		text: `{apiVersion: v1, kind: ConfigMap, data: {a: b}, metadata: {namespace: NS, name: NAME}}`},
	"services": {
		text: `{apiVersion: v1, kind: Service, spec: {type: ExternalName, externalName: example.com}, metadata: {namespace: NS, name: NAME}}`},
	"deployments.apps": {
		text: `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: NS, name: NAME}, spec: {replicas: 2, selector: {matchLabels: {app: a}},
			template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: nginx}]}}}}`,
		status: `{"status":{"replicas":2,"readyReplicas":1,"availableReplicas":1,"updatedReplicas":2}}`,
	},
	"pods": {
		text: `{apiVersion: v1, kind: Pod, metadata: {namespace: NS, name: NAME}, spec: {automountServiceAccountToken: false,
			terminationGracePeriodSeconds: 0, containers: [{name: c, image: nginx}]}}`,
		status: `{"status":{"phase":"Running","podIP":"10.0.0.1","containerStatuses":[{"name":"c","ready":true,"restartCount":3,"image":"","imageID":"","state":{"running":{}}}]}}`,
	},
	"nodes": {
		text:   `{apiVersion: v1, kind: Node, metadata: {name: NAME, labels: {node-role.kubernetes.io/worker: ""}}}`,
		status: `{"status":{"conditions":[{"type":"Ready","status":"True"}],"nodeInfo":{"kubeletVersion":"v1.37.0"}}}`,
	},
	"events": {text: `{apiVersion: v1, kind: Event, type: Warning, reason: Test, message: NAME happened, metadata: {namespace: NS, name: NAME},
		involvedObject: {kind: Pod, name: x, namespace: NS}, lastTimestamp: "2026-01-01T00:00:00Z"}`},
}

// TestFollowAsKubectl compares the rows and objects of dump --watch and kubectl get --watch. Tables are
// compared for each type, other formats for one type.
func TestFollowAsKubectl(t *testing.T) {
	for name, object := range manifestsByType {
		t.Run(name, func(t *testing.T) {
			ns := harness.Namespace(t)
			if name == "pods" {
				object.createNamed(t, "serviceaccount", ns, "default")
			}
			object.apply(t, ns, "first")
			var kubectl, crdcache []*runningCommand
			formats := [][]string{{}, {"-o", "wide"}}
			if name == "pods" {
				formats = append(formats, []string{"--show-labels"}, []string{"-o", "json"},
					[]string{"-o", "yaml"}, []string{"-o", "name"},
					[]string{"-o", "custom-columns=A:.metadata.name,B:.metadata.labels"})
			}
			for _, format := range formats {
				args := append([]string{name, "-n", ns, "-w"}, format...)
				kubectl = append(kubectl,
					startCommand(t, harness.KubectlPath(t), append([]string{"get"}, args...)...))
				crdcache = append(crdcache,
					startCommand(t, harness.Crdcache(t), append([]string{"dump"}, args...)...))
			}
			for i := range formats {
				kubectl[i].awaitOutput(t, "first")
				crdcache[i].awaitOutput(t, "first")
			}
			object.apply(t, ns, "second")
			harness.Kubectl(t, "label", name, "second", "-n", ns, "a=b")
			if object.status != "" {
				harness.Kubectl(t, "patch", name, "second", "-n", ns, "--subresource=status", "--type=merge",
					"-p", object.status)
			}
			harness.Kubectl(t, "delete", name, "second", "-n", ns)
			object.apply(t, ns, "the-last")
			if name == "nodes" { // a cluster-scoped object, which is not deleted with the test's namespace
				defer harness.Kubectl(t, "delete", name, "first", "the-last")
			}
			for i, format := range formats {
				kubectl[i].awaitOutput(t, "the-last")
				crdcache[i].awaitOutput(t, "the-last")
				kubectl[i].interrupt(t)
				if code := crdcache[i].interrupt(t); code != 130 {
					t.Errorf("%q: exit code %d after an interrupt", format, code)
				}
				want, got := kubectl[i].stdoutText(), crdcache[i].stdoutText()
				if want != got && withoutAgeValues(want) != withoutAgeValues(got) {
					t.Errorf("%q: kubectl prints\n%s\ncrdcache\n%s", format, want, got)
				}
			}
		})
	}
}

func (m manifest) apply(t *testing.T, ns, name string) {
	t.Helper()
	// kubectl up to 1.31 parses input as JSON if it begins with a brace.
	text, err := yaml.YAMLToJSON([]byte(strings.NewReplacer("NS", ns, "NAME", name).Replace(m.text)))
	must(t, err)
	cmd := newCommand(t, harness.KubectlPath(t), "create", "-f", "-")
	cmd.Stdin = bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// createNamed creates an object that needs only a name.
func (manifest) createNamed(t *testing.T, kind, ns, name string) {
	t.Helper()
	harness.Kubectl(t, "create", kind, name, "-n", ns)
}

var (
	agePattern = regexp.MustCompile(`\b(\d+[ydhms])+\b|<invalid>`)
	gapPattern = regexp.MustCompile(` +`)
)

// withoutAgeValues removes ages from tables, because the tables were printed at different times.
func withoutAgeValues(table string) string {
	return gapPattern.ReplaceAllString(agePattern.ReplaceAllString(table, "AGE"), " ")
}

func (f *runningCommand) stderrText() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stderr.String()
}
