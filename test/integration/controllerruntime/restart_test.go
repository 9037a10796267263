package controllerruntime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/adapters/storage/disk"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// operatorEnv has the operatorOptions of an operator's process as JSON.
const operatorEnv = "CRDCACHE_TEST_KEEPING_OPERATOR"

type operatorOptions struct{ Kubeconfig, Folder, Namespace string }

// The limit of the operator's live reads, per second and at once.
const liveQPS, liveBurst = 30, 5

// wholeLabel marks the ConfigMaps of which the operator keeps all fields. In reconciledLabel, it writes the
// value that it has reconciled.
const wholeLabel, reconciledLabel = "mine", "seen"

// Operator is a manager that keeps one field of ConfigMaps and persists them. For each, it verifies that Get
// returns all fields, that a list returns the kept ones, and that its client does not write these back.
// net/rpc requires an exported type.
type Operator struct {
	operatorOptions
	cache  *controllerruntime.Cache
	client client.Client
	began  time.Time

	mu struct {
		sync.Mutex
		violations []string
	}
}

// Report has the state of an operator.
type Report struct {
	// Violations has the wrong results so far.
	Violations []string
	// Saved and Resumed report whether the cache is stored in the folder, and began with its content.
	Saved, Resumed bool
	// Reduced reports for each object of the cache whether it lacks fields.
	Reduced map[string]bool
	// LiveReads are the reads from the API server since the start.
	LiveReads int64
	Uptime    time.Duration
}

// runOperator runs an operator until standard input ends, and returns the exit code of its process.
func runOperator(text string) int {
	o := &Operator{began: time.Now()}
	if err := errors.Join(json.Unmarshal([]byte(text), &o.operatorOptions), o.run()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (o *Operator) run() error {
	rest, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return err
	}
	rest.QPS, rest.Burst = liveQPS, liveBurst
	mgr, err := ctrl.NewManager(rest, ctrl.Options{
		NewCache: controllerruntime.NewCacheFunc(controllerruntime.Options{
			Persistence: disk.New(o.Folder, disk.Options{}),
			Keep: dynamicinformer.Keep{Paths: []string{".data.kept"},
				WholeLabels: labels.SelectorFromSet(labels.Set{wholeLabel: "yes"})}}),
		NewClient:  controllerruntime.NewClient,
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{o.Namespace: {}}},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{MaxConcurrentReconciles: 4},
	})
	if err != nil {
		return err
	}
	o.cache, o.client = mgr.GetCache().(*controllerruntime.Cache), mgr.GetClient()
	server := rpc.NewServer()
	err = errors.Join(server.Register(o), ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).
		Complete(reconcile.Func(o.reconcile)))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // ended by the end of the test
		defer cancel()
		server.ServeConn(struct {
			io.Reader
			io.WriteCloser
		}{os.Stdin, os.Stdout})
	}()
	return mgr.Start(ctx)
}

func (o *Operator) reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	live, list := &corev1.ConfigMap{}, &corev1.ConfigMapList{}
	if err := o.client.Get(ctx, request.NamespacedName, live); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if live.Data["dropped"] != live.Name || controllerruntime.IsReduced(live) {
		o.addViolation("Get returns %v", live)
	}
	if err := o.client.List(ctx, list); err != nil {
		return ctrl.Result{}, err
	}
	k := slices.IndexFunc(list.Items, func(c corev1.ConfigMap) bool { return c.Name == live.Name })
	if k < 0 {
		return ctrl.Result{}, nil // deleted since
	}
	listed := &list.Items[k]
	_, hasDropped := listed.Data["dropped"]
	whole := listed.Labels[wholeLabel] == "yes"
	if hasDropped != whole || controllerruntime.IsReduced(listed) == whole || listed.Data["kept"] == "" {
		o.addViolation("List returns %v", listed)
	}
	var reduced *controllerruntime.ReducedError
	if !whole {
		if err := o.client.Update(ctx, listed.DeepCopy()); !errors.As(err, &reduced) {
			o.addViolation("Update of %v returns %v", listed, err)
		}
	}
	if listed.Labels[reconciledLabel] == listed.Data["kept"] {
		return ctrl.Result{}, nil
	}
	before := listed.DeepCopy()
	metav1.SetMetaDataLabel(&listed.ObjectMeta, reconciledLabel, listed.Data["kept"])
	return ctrl.Result{}, client.IgnoreNotFound(o.client.Patch(ctx, listed, client.MergeFrom(before)))
}

func (o *Operator) addViolation(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.violations = append(o.mu.violations, fmt.Sprintf(format, args...))
}

// Inspect returns a report.
func (o *Operator) Inspect(_ struct{}, report *Report) error {
	o.mu.Lock()
	report.Violations = o.mu.violations
	o.mu.Unlock()
	list := &corev1.ConfigMapList{}
	if err := o.cache.List(context.Background(), list); err != nil {
		return err
	}
	report.Reduced = map[string]bool{}
	for _, item := range list.Items {
		report.Reduced[item.Name] = controllerruntime.IsReduced(&item)
	}
	for _, i := range o.cache.Factory().Informers() {
		persistence := i.Persistence()
		report.Saved, report.Resumed = persistence.Checkpoint.Objects > 0, persistence.Resumed
	}
	for _, m := range o.cache.Factory().Metrics() {
		report.LiveReads += m.Requests["get"]
	}
	report.Uptime = time.Since(o.began)
	return nil
}

// runningOperator is the process of an Operator.
type runningOperator struct {
	*rpc.Client
	kill func()
}

func startOperator(t *testing.T, options operatorOptions) *runningOperator {
	t.Helper()
	text, err := json.Marshal(options)
	must(t, err)
	program, err := os.Executable()
	must(t, err)
	command := exec.Command(program)
	command.Env, command.Stderr = append(os.Environ(), operatorEnv+"="+string(text)), os.Stderr
	stdin, err := command.StdinPipe()
	must(t, err)
	stdout, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	o := &runningOperator{Client: rpc.NewClient(struct {
		io.Reader
		io.WriteCloser
	}{stdout, stdin})}
	o.kill = sync.OnceFunc(func() {
		_ = command.Process.Kill()
		_ = o.Close()
		_ = command.Wait()
	})
	t.Cleanup(o.kill)
	return o
}

// inspect requests a report. It fails the test for violations, and for more live reads than the limit allows.
func (o *runningOperator) inspect(t *testing.T) *Report {
	t.Helper()
	report := &Report{}
	must(t, o.Call("Operator.Inspect", struct{}{}, report))
	if limit := liveBurst + liveQPS*report.Uptime.Seconds(); float64(report.LiveReads) > limit {
		t.Errorf("%d live reads in %v, at most %.0f are allowed", report.LiveReads, report.Uptime, limit)
	}
	if len(report.Violations) > 0 {
		t.Fatalf("the operator reports %q", report.Violations)
	}
	return report
}

// TestKeepingOperatorIsKilled verifies that an operator with a keep-list reconciles whole objects, which it
// reads live, and cannot write reduced ones back. It is killed and started again with its stored cache: then
// it misses no object, and the stored objects are still reduced and marked.
func TestKeepingOperatorIsKilled(t *testing.T) {
	namespace := harness.Namespace(t)
	admin, err := client.New(harness.Config(t), client.Options{})
	must(t, err)
	written := map[string]string{} // the kept values by name
	write := func(name, value string, whole bool) {
		t.Helper()
		c := &corev1.ConfigMap{}
		c.Namespace, c.Name, c.Data = namespace, name, map[string]string{"kept": value, "dropped": name}
		c.Labels = map[string]string{wholeLabel: map[bool]string{true: "yes", false: "no"}[whole]}
		do := func() error { return admin.Create(t.Context(), c) }
		if _, exists := written[name]; exists {
			do = func() error { return admin.Update(t.Context(), c) }
		}
		must(t, do())
		written[name] = value
	}
	name := func(n int) string { return fmt.Sprint("config-", n) }
	for n := range 60 {
		write(name(n), "first", n%10 == 0)
	}
	options := operatorOptions{harness.Kubeconfig(t), t.TempDir(), namespace}
	// settled waits until the operator has reconciled and saved all objects.
	awaitSettled := func(o *runningOperator) *Report {
		t.Helper()
		var report *Report
		harness.Eventually(t, func(ctx context.Context) error {
			list := &corev1.ConfigMapList{}
			if err := admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return err
			}
			reconciled, reduced := map[string]string{}, map[string]bool{}
			for _, item := range list.Items {
				if item.Data["dropped"] != item.Name || item.Data["kept"] != written[item.Name] {
					t.Fatalf("the operator has changed %v", item)
				}
				reconciled[item.Name] = item.Labels[reconciledLabel]
				reduced[item.Name] = item.Labels[wholeLabel] != "yes"
			}
			if diff := cmp.Diff(written, reconciled); diff != "" {
				return fmt.Errorf("the reconciled objects (-written +reconciled):\n%s", diff)
			}
			report = o.inspect(t)
			if diff := cmp.Diff(reduced, report.Reduced); diff != "" || !report.Saved {
				return fmt.Errorf("it is saved: %v; reduced objects (-want +got):\n%s", report.Saved, diff)
			}
			return nil
		})
		return report
	}
	o := startOperator(t, options)
	if report := awaitSettled(o); report.LiveReads < 54 || report.Resumed {
		t.Errorf("the first operator has read %d objects live, and resumed: %v", report.LiveReads,
			report.Resumed)
	}
	for n := range 20 { // some are reconciled before the end
		write(name(n), "second", n%10 == 1)
	}
	o.kill()
	for n := 10; n < 30; n++ {
		write(name(n), "third", n%10 == 2)
	}
	write(name(60), "third", false)
	deleted := &corev1.ConfigMap{}
	deleted.Namespace, deleted.Name = namespace, name(59)
	must(t, admin.Delete(t.Context(), deleted))
	delete(written, deleted.Name)
	// Servers before 1.34 do not update an idle watch cache before they answer a list.
	report := awaitSettled(startOperator(t, options))
	resumes := harness.Has(t, harness.Since("1.34"))
	if report.LiveReads == 0 || report.Resumed != resumes {
		t.Errorf("the second operator has read %d objects live; it resumed: %v, want %v", report.LiveReads,
			report.Resumed, resumes)
	}
}
