package crdcached_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestManagers runs a scaffolded manager that reads ConfigMaps from crdcached. Its leader election, events,
// APIReader, writes and other types use the cluster.
func TestManagers(t *testing.T) {
	s := harness.StartCrdcached(t, "types: [configmaps]")
	namespace := harness.Namespace(t)
	user := harness.NewUser(t, "manager")
	user.Grant(t, namespace, newRule("configmaps", "", "list", "watch", "get", "update"),
		newRule("serviceaccounts", "", "list", "watch"),
		newRule("leases", "coordination.k8s.io", "get", "create", "update"), newRule("events", "events.k8s.io",
			"create", "patch"), newRule("events", "", "create", "patch"))
	user.Grant(t, "", newRule("customresourcedefinitions", "apiextensions.k8s.io", "list", "watch"),
		newRule("apiservices", "apiregistration.k8s.io", "list", "watch"), newRule("namespaces", "", "get"))
	config := user.Config(t)
	cached, answered := s.As(config), &responseCounter{}
	cached.WrapTransport = answered.wrap
	manager, err := ctrl.NewManager(config, ctrl.Options{
		NewCache: controllerruntime.NewCacheFrom(cached, []string{"configmaps"},
			controllerruntime.Options{}),
		Cache:          cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		LeaderElection: true, LeaderElectionID: "manager", LeaderElectionNamespace: namespace,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	must(t, err)
	c := &copier{Client: manager.GetClient(), direct: manager.GetAPIReader(),
		recorder: manager.GetEventRecorder("copier")}
	must(t, ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Complete(c))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }() // ended by cancel
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	checkManager(t, namespace)
	if answered.n.Load() == 0 {
		t.Error("crdcached answered no request from its cache")
	}
}

// checkManager waits until the manager has copied a value, leads, and has recorded an event.
func checkManager(t *testing.T, namespace string) {
	t.Helper()
	admin, err := kubernetes.NewForConfig(harness.Config(t))
	must(t, err)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Data: map[string]string{"value": "1"}}
	if _, err := admin.CoreV1().ConfigMaps(namespace).Create(t.Context(), object,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, func(ctx context.Context) error {
		got, err := admin.CoreV1().ConfigMaps(namespace).Get(ctx, "a", metav1.GetOptions{})
		if err == nil && got.Data["copy"] != "1" {
			err = fmt.Errorf("the manager has not written: %v", got.Data)
		}
		return err
	})
	lease, err := admin.CoordinationV1().Leases(namespace).Get(t.Context(), "manager", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		t.Errorf("the manager is not the leader: %v, %v", lease, err)
	}
	harness.Eventually(t, func(ctx context.Context) error {
		all, err := admin.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
		for k := range all.Items {
			if all.Items[k].Reason == "Copied" && all.Items[k].Regarding.Name == "a" {
				return nil
			}
		}
		return fmt.Errorf("the manager has recorded no event: %w", err)
	})
}

func newRule(resource, group string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// responseCounter counts the answers from a cache.
type responseCounter struct{ n atomic.Int64 }

func (c *responseCounter) wrap(inner http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := inner.RoundTrip(r)
		if err == nil && response.Header.Get("Crdcache-Served") == "cache" {
			c.n.Add(1)
		}
		return response, err
	})
}

var _ transport.WrapperFunc = (&responseCounter{}).wrap

// copier is a reconciler that copies a value within each ConfigMap.
type copier struct {
	client.Client
	direct   client.Reader
	recorder events.EventRecorder
}

func (c *copier) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	object := &corev1.ConfigMap{}
	if err := c.Get(ctx, r.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if object.Data["value"] == object.Data["copy"] {
		return ctrl.Result{}, nil
	}
	// crdcached does not cache this type
	if err := c.List(ctx, &corev1.ServiceAccountList{}, client.InNamespace(r.Namespace)); err != nil {
		return ctrl.Result{}, err
	}
	if err := c.direct.Get(ctx, client.ObjectKey{Name: r.Namespace}, &corev1.Namespace{}); err != nil {
		return ctrl.Result{}, err
	}
	object.Data["copy"] = object.Data["value"]
	if err := c.Update(ctx, object); err != nil {
		return ctrl.Result{}, err
	}
	c.recorder.Eventf(object, nil, corev1.EventTypeNormal, "Copied", "Copy", "copied the value")
	return ctrl.Result{}, nil
}

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
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
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
	must(t, err)
	client.Stderr = os.Stderr
	must(t, client.Start())
	defer func() {
		_ = client.Process.Kill() // it runs until the end of the test
		_ = client.Wait()
	}()
	workloads := dynamic.NewForConfigOrDie(harness.Config(t)).Resource(schema.GroupVersionResource{
		Group: group, Version: "v1", Resource: "workloads"}).Namespace("payments")
	all, err := workloads.List(t.Context(), metav1.ListOptions{})
	must(t, err)
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
	must(t, workloads.Delete(t.Context(), "created", metav1.DeleteOptions{}))
	for _, want := range []string{"ADDED payments/created", "DELETED payments/created"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the line is %q (%v), want %q", lines.Text(), lines.Err(), want)
		}
	}
}
