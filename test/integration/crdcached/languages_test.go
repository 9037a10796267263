package crdcached_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestOtherLanguages runs examples/python, examples/javascript and kubectl as a user of one namespace. Make
// installs the clients.
func TestOtherLanguages(t *testing.T) {
	harness.InstallCRDs(t, harness.ReadManifests(t, testdata+"crds")...)
	harness.Apply(t, harness.ReadManifests(t, testdata+"objects")...)
	server := harness.StartCrdcached(t, "indexConfigs: ['"+testdata+"indexes/platform.yaml']")
	user := harness.NewUser(t, "languages")
	user.Grant(t, "payments", newPolicyRule("get,list,watch", "workloads"))
	config := user.Config(t)
	config.Host, config.CAFile, config.CAData = server.URL, "", server.CA
	kubeconfig := harness.WriteKubeconfig(t, config)

	python := []string{"/usr/bin/python3", "../../../examples/python/client.py"}
	javascript := []string{"node", "../../../examples/javascript/client.js"}
	const matches = "MATCH payments/card-gateway\nMATCH payments/fraud-model\n"
	kubectl := []string{harness.KubectlPath(t), "get", "workloads", "--output-watch-events", "-o",
		`jsonpath={.type} {.object.metadata.namespace}/{.object.metadata.name}{"\n"}`, "--watch", "-n"}
	for name, client := range map[string]struct {
		query, forbidden, follow []string
		matches                  string // of the query
	}{
		"Python": {
			query:     append(slices.Clone(python), group, "v1", "payments", "workloads", "--query", "condition=Ready/False"),
			forbidden: append(slices.Clone(python), group, "v1", "storefront", "workloads"),
			follow:    append(slices.Clone(python), group, "v1", "payments", "workloads"),
			matches:   matches,
		},
		"JavaScript": {
			query:     append(slices.Clone(javascript), group, "v1", "payments", "workloads", "condition=Ready/False"),
			forbidden: append(slices.Clone(javascript), group, "v1", "storefront", "workloads", "condition=Ready/False"),
			follow:    append(slices.Clone(javascript), group, "v1", "payments", "workloads"),
			matches:   matches,
		},
		"kubectl": {
			query: []string{harness.KubectlPath(t), "get", "--raw",
				"/query" + demo + "/namespaces/payments/workloads?q=condition%3DReady/False&count=true"},
			matches:   `"count":2`,
			forbidden: append(slices.Clone(kubectl), "storefront"),
			follow:    append(slices.Clone(kubectl), "payments"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			newCommand := func(ctx context.Context, args []string) *exec.Cmd {
				c := exec.CommandContext(ctx, args[0], args[1:]...)
				c.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
				return c
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			out, err := newCommand(ctx, client.query).CombinedOutput()
			if err != nil || !strings.Contains(string(out), client.matches) {
				t.Errorf("the query prints\n%s%v, want\n%s", out, err, client.matches)
			}
			if out, err := newCommand(ctx, client.forbidden).CombinedOutput(); err == nil {
				t.Errorf("a list without the right to list printed\n%s", out)
			}
			followWorkloads(t, newCommand(ctx, client.follow))
		})
	}
}

// followWorkloads checks that a client prints the workloads of a namespace, and then a creation and a
// deletion.
func followWorkloads(t *testing.T, client *exec.Cmd) {
	t.Helper()
	stdout, err := client.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	client.Stderr = os.Stderr
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = client.Process.Kill() // it runs until the end of the test
		_ = client.Wait()
	}()
	workloads := dynamic.NewForConfigOrDie(harness.Config(t)).Resource(schema.GroupVersionResource{
		Group: group, Version: "v1", Resource: "workloads"}).Namespace("payments")
	all, err := workloads.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for range all.Items {
		if !lines.Scan() {
			t.Fatalf("the output ends after %v, want %d objects", lines.Err(), len(all.Items))
		}
	}
	created := all.Items[0].DeepCopy()
	created.SetName("created")
	created.SetResourceVersion("")
	if _, err := workloads.Create(t.Context(), created, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := workloads.Delete(t.Context(), "created", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ADDED payments/created", "DELETED payments/created"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the line is %q (%v), want %q", lines.Text(), lines.Err(), want)
		}
	}
}
