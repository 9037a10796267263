package oddservers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/informer/conformance"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestLaggingAPIServer runs informers behind a load balancer over two API servers. One of them receives no
// changes. No informer may return to an older state, neither with a watch on the lagging server nor with a
// list. That server answers "resource version too large" until it has the requested version.
func TestLaggingAPIServer(t *testing.T) {
	config := harness.Config(t)
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	gvr := schema.GroupVersionResource{Group: harness.Group(t), Version: "v1", Resource: "boats"}
	harness.InstallCRDs(t, harness.NewCRD(gvr.Group, "Boat"))
	admin, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, gvr: gvr, objects: admin.Resource(gvr).Namespace(harness.Namespace(t))}
	f.createObject("first")

	etcd := harness.StartFaultProxy(t, harness.EtcdAddress(t))
	lagging := harness.StartAnotherAPIServer(t, etcd.Address())
	balancer := harness.StartFaultProxy(t, lagging)
	faults := conformance.NewFaults()
	faults.RefuseWatchList() // a lagging server would accept a watch-list and answer only later
	refused := &tooLargeCounter{}
	config.Host = "https://" + balancer.Address()
	config.Wrap(faults.Wrap)
	config.Wrap(refused.wrap)
	f.startInformer(config)
	f.changeObjects()
	f.awaitAgreement() // an event has arrived, so the watch cache is ready

	catchUp := etcd.AddToxic(t, "timeout",
		map[string]any{"timeout": 0}) // the server receives no data from etcd
	balancer.Redirect(t, server.Host)
	f.changeObjects()
	f.awaitAgreement()
	watches, lists := faults.Requests("watch"), faults.Requests("list")
	balancer.Redirect(t, lagging)
	harness.Eventually(t, func(context.Context) error {
		if faults.Requests("watch") == watches {
			return fmt.Errorf("no watch at the lagging server")
		}
		return nil
	})
	f.changeObjects()
	harness.Eventually(t, func(context.Context) error {
		faults.ExpireWatches() // the watch may not have been accepted yet
		if n := faults.Requests("list"); n > lists+1 && refused.answers.Load() == 0 {
			lists = n // lists succeed: the balancer kept a connection that was opened while it was redirected
			balancer.Redirect(t, lagging)
		}
		if refused.answers.Load() == 0 {
			return fmt.Errorf("the lagging server has not rejected the resource version as too large")
		}
		return nil
	})
	catchUp() // closes the connections to etcd, and the server opens new ones
	f.awaitAgreement()
}

// tooLargeCounter counts answers that say "resource version too large". The client may retry such requests
// itself, so the informer may not see them.
type tooLargeCounter struct{ answers atomic.Int64 }

func (l *tooLargeCounter) wrap(next http.RoundTripper) http.RoundTripper {
	return countingTransport{l, next}
}

type countingTransport struct {
	*tooLargeCounter
	next http.RoundTripper
}

func (c countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusGatewayTimeout {
		return response, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(body, []byte(metav1.CauseTypeResourceVersionTooLarge)) {
		c.answers.Add(1)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// fixture is a set of changing objects and an informer of them.
type fixture struct {
	*testing.T
	objects  dynamic.ResourceInterface
	gvr      schema.GroupVersionResource
	informer *dynamicinformer.Informer
	witness  *harness.Witness
	value    int64
}

// startInformer starts the informer.
func (f *fixture) startInformer(config *rest.Config) {
	f.Helper()
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: config})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := factory.Shutdown(context.Background()); err != nil {
			f.Error(err)
		}
	})
	if f.informer, err = factory.ForResource(f.gvr); err != nil {
		f.Fatal(err)
	}
	f.witness = harness.NewWitness("the informer", nil)
	if _, err := f.informer.AddEventHandler(f.witness); err != nil {
		f.Fatal(err)
	}
	if err := factory.Start(f.Context()); err != nil {
		f.Fatal(err)
	}
	f.awaitAgreement()
}

func (f *fixture) createObject(name string) {
	f.Helper()
	boat := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": f.value}}}
	boat.SetGroupVersionKind(f.gvr.GroupVersion().WithKind("Boat"))
	boat.SetName(name)
	if _, err := f.objects.Create(f.Context(), boat, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}

// changeObjects updates a boat, and creates and deletes another one.
func (f *fixture) changeObjects() {
	f.Helper()
	f.value++
	if _, err := f.objects.Patch(f.Context(), "first", types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"value":%d}}`, f.value), metav1.PatchOptions{}); err != nil {
		f.Fatal(err)
	}
	name := fmt.Sprintf("boat-%d", f.value)
	f.createObject(name)
	if f.value%2 == 0 {
		if err := f.objects.Delete(f.Context(), name, metav1.DeleteOptions{}); err != nil {
			f.Fatal(err)
		}
	}
}

// awaitAgreement waits until the informer and its handler agree with the current server, and checks the
// handler's events.
func (f *fixture) awaitAgreement() {
	f.Helper()
	list, err := f.objects.List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	harness.Eventually(f, func(context.Context) error {
		live := f.witness.LiveObjects()
		if len(live) != len(list.Items) || len(f.informer.GetStore().ListKeys()) != len(list.Items) {
			return fmt.Errorf("the handler received %d boats, the cache has %d, the server %d; the status is %+v",
				len(live), len(f.informer.GetStore().ListKeys()), len(list.Items), f.informer.Status())
		}
		for _, boat := range list.Items {
			key := boat.GetNamespace() + "/" + boat.GetName()
			value, _, _ := unstructured.NestedInt64(boat.Object, "spec", "value")
			if want := (harness.WitnessedObject{UID: boat.GetUID(), Value: value}); live[key] != want {
				return fmt.Errorf("the handler received %s %+v, the server has %+v", key, live[key], want)
			}
			if cached, exists, err := f.informer.GetStore().GetByKey(key); err != nil || !exists ||
				cached.(*unstructured.Unstructured).GetResourceVersion() != boat.GetResourceVersion() {
				return fmt.Errorf("the cache has another version of %s than %s (%v)", key,
					boat.GetResourceVersion(), err)
			}
		}
		return nil
	})
	for _, line := range f.witness.Violations() {
		f.Error(line)
	}
}

// throughNginx returns a config that reaches the API server through nginx with only proxy_pass, which holds
// back the response to a watch until it ends.
func throughNginx(t *testing.T) *rest.Config {
	t.Helper()
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed: apt-get install nginx")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, `daemon off; pid nginx.pid; error_log stderr;
events {}
http {
  access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  server { listen %s; location / { proxy_pass %s; } }
}`, address, harness.ConfigThroughProxy(t).Host), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(nginx, "-p", dir, "-c", file)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait()
	})
	return &rest.Config{Host: "http://" + address, QPS: -1}
}

// TestNginx verifies that informers and the tracker stay synced behind a proxy that holds back watches, say
// so, and receive changes from lists.
func TestNginx(t *testing.T) {
	config, err := dynamicinformer.Reconnectable(throughNginx(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	group := harness.Group(t)
	boats := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "boats"}
	harness.InstallCRDs(t, harness.NewCRD(group, "Boat"))
	tracker, err := discovery.NewTracker(config, discovery.TrackerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = tracker.Run(t.Context()) }() // ended by the test's context
	f, err := dynamicinformer.New(dynamicinformer.Options{Config: config, Listener: status.Listener{
		StateChanged: func(before, after status.Status) {
			if before.State == status.Synced && after.State == status.Degraded {
				t.Errorf("%s after it was synced", after)
			}
		}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Shutdown(context.Background()) }()
	for _, gvr := range []schema.GroupVersionResource{boats, {Version: "v1", Resource: "namespaces"},
		{Version: "v1", Resource: "events"}, {Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}} {
		if _, err := f.ForResource(gvr); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, func(context.Context) error {
		for _, i := range f.Informers() {
			if s := i.Status(); s.State != status.Synced || s.Reason != status.ReasonPolled {
				return fmt.Errorf("%s, want Polled", s)
			}
		}
		return nil
	})
	admin, err := dynamic.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	(&fixture{T: t, gvr: boats,
		objects: admin.Resource(boats).Namespace(harness.Namespace(t))}).createObject("late")
	harness.InstallCRDs(t, harness.NewCRD(group, "Ship"))
	harness.Eventually(t, func(context.Context) error {
		i, err := f.ForResource(boats)
		if err != nil || len(i.GetStore().ListKeys()) == 0 {
			return fmt.Errorf("the cache lacks the boat: %w", err)
		}
		if _, ok := tracker.Snapshot().Lookup(schema.GroupResource{Group: group, Resource: "ships"}); !ok {
			return fmt.Errorf("the tracker does not know the ships: %+v", tracker.Status())
		}
		return nil
	})
}

// TestPlainDiscovery checks that a tracker finds the same types on a server without aggregated discovery, and
// follows a new type.
func TestPlainDiscovery(t *testing.T) {
	startTracker := func(config *rest.Config) (*discovery.Tracker, []string) {
		tracker := harness.RunTracker(t, config)
		if err := tracker.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		return tracker, typeNames(tracker)
	}
	_, want := startTracker(harness.Config(t))
	plain, got := startTracker(harness.ConfigThroughProxy(t, hideAggregated))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-aggregated +plain):\n%s", diff)
	}
	group := harness.Group(t)
	harness.InstallCRDs(t, harness.NewCRD(group, "Boat"))
	harness.Eventually(t, func(context.Context) error {
		if _, known := plain.Snapshot().Lookup(schema.GroupResource{Group: group,
			Resource: "boats"}); !known {
			return errors.New("the type is not known")
		}
		return nil
	})
}

// typeNames returns the names of the types that a tracker knows.
func typeNames(tracker *discovery.Tracker) []string {
	var all []string
	for _, known := range tracker.Snapshot().Types() {
		all = append(all, known.GroupResource.String()+" "+strings.Join(known.ServedVersions(), ","))
	}
	slices.Sort(all)
	return all
}

// hideAggregated wraps an API server and hides its aggregated discovery.
func hideAggregated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "apidiscovery") {
			r = r.Clone(r.Context())
			r.Header.Set("Accept", "application/json")
		}
		next.ServeHTTP(w, r)
	})
}
