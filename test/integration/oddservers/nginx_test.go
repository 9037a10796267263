package oddservers_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/test/integration/harness"
)

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
