package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestManyDefinitionsAtOnce installs and deletes 500 CRDs. The number of requests must not grow with the
// number of changes.
func TestManyDefinitionsAtOnce(t *testing.T) {
	config, admin := harness.Config(t), newAdminClient(t)
	counting, requests := harness.CountRequests(config)
	tracker, events := startTracker(t, counting, discovery.TrackerOptions{})
	builtIn := tracker.Snapshot().Len()
	checkRequests(t, requests, 1, harness.FirstWatches(t))

	suffix := harness.Group(t)
	var specs []crdSpec
	for i := range 500 {
		specs = append(specs, crdSpec{
			group: fmt.Sprintf("g%02d.%s", i%50, suffix), plural: fmt.Sprintf("r%03ds",
				i), kind: fmt.Sprintf("R%03d", i),
			scope: "Namespaced", versions: []string{"v1"}, label: "many",
		})
	}
	began := time.Now()
	createDefinitions(t, admin, specs)
	missing := map[schema.GroupResource]bool{}
	for _, s := range specs {
		missing[s.resource()] = true
	}
	events.receiveUntil(func(e discovery.Event) bool {
		if isEstablished(e) {
			delete(missing, e.Type.GroupResource)
		}
		return len(missing) == 0
	})
	t.Logf("500 CRDs known after %v", time.Since(began))
	// On a busy machine, the API server ends watches that fall behind. If it no longer has their next event,
	// the tracker lists again.
	checkRequests(t, requests, fewLists, fewWatches)
	if got := tracker.Snapshot().Len(); got != builtIn+500 {
		t.Errorf("%d types, want %d", got, builtIn+500)
	}

	remaining := len(specs)
	definitions := admin.Resource(crd.GVR)
	// A busy API server has no time for all in one request.
	harness.Eventually(t, func(ctx context.Context) error {
		return definitions.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "test=many"})
	})
	events.receiveUntil(func(e discovery.Event) bool {
		if isRemoved(e) {
			remaining--
		}
		return remaining == 0
	})
	// A discovery round may still list them. They must not reappear.
	before := tracker.Status().Discovery.LastContact
	tracker.Refresh()
	harness.Eventually(t, func(context.Context) error {
		if !tracker.Status().Discovery.LastContact.After(before) {
			return errors.New("no discovery round yet")
		}
		return nil
	})
	if got := tracker.Snapshot().Len(); got != builtIn {
		t.Errorf("%d types, want %d", got, builtIn)
	}
	checkRequests(t, requests, fewLists, fewWatches)
}

// fewLists and fewWatches limit the requests for hundreds of changes.
const (
	fewLists   = 5
	fewWatches = 10
)

// checkRequests limits the requests since the tracker started.
func checkRequests(t *testing.T, requests *harness.Requests, lists, watches int) {
	t.Helper()
	const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	t.Logf("requests: %v", requests.All())
	if n := requests.Count("GET", crds); n > lists {
		t.Errorf("%d lists of CRDs, want at most %d", n, lists)
	}
	if n := requests.Count("WATCH", crds); n > watches {
		t.Errorf("%d watches of CRDs, want at most %d", n, watches)
	}
	if n := requests.Count("GET", "/apis"); n > 3 {
		t.Errorf("%d discovery rounds, want at most 3", n)
	}
}

// TestUnavailableAPIService registers an aggregated API without a server.
func TestUnavailableAPIService(t *testing.T) {
	config, admin := harness.Config(t), newAdminClient(t)
	s := crdSpec{group: harness.Group(t), plural: "widgets", kind: "Widget", scope: "Namespaced",
		versions: []string{"v1"}}
	harness.InstallCRDs(t, s.object())
	tracker, events := startTracker(t, config, discovery.TrackerOptions{})
	before := tracker.Snapshot().Len()
	create(t, admin, apiServices, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1.down.example.org"},
		"spec": map[string]any{
			"group": "down.example.org", "version": "v1", "groupPriorityMinimum": int64(100),
			"versionPriority":       int64(10),
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"name": "nobody", "namespace": "default"},
		},
	}})
	awaitFailedGroupVersions(t, tracker, 1)
	unknown := tracker.Status().FailedGroupVersions
	if len(unknown) != 1 || unknown[0].GroupVersion.String() != "down.example.org/v1" {
		t.Errorf("FailedGroupVersions = %v, want only down.example.org/v1", unknown)
	}
	if got := tracker.Snapshot().Len(); got != before {
		t.Errorf("%d types, want %d as before", got, before)
	}
	if _, err := tracker.Snapshot().Catalog().Resolve("deployments.apps"); err != nil {
		t.Error(err)
	}
	if _, err := newClient(t, config, discovery.Options{}).Resolve(t.Context(), s.name()); err != nil {
		t.Error(err)
	}
	remove(t, admin, apiServices, "v1.down.example.org")
	awaitFailedGroupVersions(t, tracker, 0)
	// The removal, which follows all effects of the outage, must be the only event of a type.
	remove(t, admin, crd.GVR, s.name())
	for _, e := range events.receiveUntil(isRemoved) {
		if e.Action != discovery.FailuresChanged && e.Type.GroupResource != s.resource() {
			t.Errorf("the outage caused the event %v", summary([]discovery.Event{e}))
		}
	}
}

// TestNoRightToReadDefinitions runs a tracker for a user who may only discover, and grants the right to read
// definitions later.
func TestNoRightToReadDefinitions(t *testing.T) {
	config, admin := harness.Config(t), newAdminClient(t)
	withoutRights := rest.CopyConfig(config)
	withoutRights.Impersonate = rest.ImpersonationConfig{UserName: "nobody",
		Groups: []string{"system:authenticated"}}
	tracker, events := startTracker(t, withoutRights, discovery.TrackerOptions{
		BlindPollInterval: 100 * time.Millisecond})
	if s := tracker.Status(); s.Mode != discovery.Polling ||
		!s.CRDs.Unavailable || !s.APIServices.Unavailable {
		t.Errorf("Status() = %+v, want Polling with unavailable sources", s)
	}
	s := crdSpec{group: harness.Group(t), plural: "widgets", kind: "Widget", scope: "Namespaced",
		versions: []string{"v1"}}
	create(t, admin, crd.GVR, s.object())
	added := lastEvent(events.receiveOfTypeUntil(s.resource(), isEstablished))
	if added.Type.Source != discovery.FromDiscovery || added.Type.UID != "" {
		t.Errorf("added the type %+v, want one from discovery without a UID", added.Type)
	}
	for gvr, o := range map[string]map[string]any{
		"clusterroles": {"kind": "ClusterRole", "rules": []any{map[string]any{
			"apiGroups": []any{"apiextensions.k8s.io"}, "resources": []any{"customresourcedefinitions"},
			"verbs": []any{"list", "watch"},
		}}},
		"clusterrolebindings": {"kind": "ClusterRoleBinding",
			"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
				"name": "crd-reader"},
			"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User",
				"name": "nobody"}}},
	} {
		o["apiVersion"], o["metadata"] = "rbac.authorization.k8s.io/v1", map[string]any{"name": "crd-reader"}
		create(t, admin, schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1",
			Resource: gvr}, &unstructured.Unstructured{Object: o})
	}
	hasUID := func(e discovery.Event) bool { return e.Type.UID != "" }
	withUID := lastEvent(events.receiveOfTypeUntil(s.resource(), hasUID))
	if withUID.Action != discovery.Changed || withUID.Type.Source == withUID.Old.Source {
		t.Errorf("after the grant: %v, want the same type with a UID", summary([]discovery.Event{withUID}))
	}
	if s := tracker.Status(); s.Mode != discovery.Watching {
		t.Errorf("Mode = %s, want Watching", s.Mode)
	}
	remove(t, admin, crd.GVR, s.name())
	events.receiveOfTypeUntil(s.resource(), isRemoved)
}

func lastEvent(list []discovery.Event) discovery.Event { return list[len(list)-1] }

// awaitFailedGroupVersions waits until n group versions cannot be discovered. It polls, because no event
// reports this.
func awaitFailedGroupVersions(t *testing.T, tracker *discovery.Tracker, n int) {
	t.Helper()
	harness.Eventually(t, func(context.Context) error {
		if got := tracker.Status().FailedGroupVersions; len(got) != n {
			return fmt.Errorf("FailedGroupVersions = %v, want %d of them", got, n)
		}
		return nil
	})
}

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1",
	Resource: "apiservices"}

// crdSpec describes a CRD. The first version is stored. Versions with the prefix "!" are not served.
type crdSpec struct {
	group, plural, kind, scope string
	label                      string // value of the label "test"
	shortNames                 []any
	versions                   []string
}

func (s crdSpec) name() string { return s.plural + "." + s.group }

func (s crdSpec) resource() schema.GroupResource {
	return schema.GroupResource{Group: s.group, Resource: s.plural}
}

func (s crdSpec) object() *unstructured.Unstructured {
	versions := []any{}
	for i, v := range s.versions {
		name, hidden := strings.CutPrefix(v, "!")
		versions = append(versions, map[string]any{
			"name": name, "served": !hidden, "storage": i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			}},
		})
	}
	names := map[string]any{"plural": s.plural, "singular": strings.ToLower(s.kind), "kind": s.kind}
	if s.shortNames != nil {
		names["shortNames"] = s.shortNames
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": s.name(), "labels": map[string]any{"test": s.label}},
		"spec":     map[string]any{"group": s.group, "scope": s.scope, "names": names, "versions": versions},
	}}
}

func newAdminClient(t *testing.T) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// create creates an object. At the end of the test it deletes the object and waits for the deletion.
func create(t *testing.T, c dynamic.Interface, gvr schema.GroupVersionResource,
	o *unstructured.Unstructured) {
	t.Helper()
	t.Cleanup(func() {
		harness.Eventually(t, func(ctx context.Context) error {
			err := c.Resource(gvr).Delete(ctx, o.GetName(), metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("%s still exists; delete: %v", o.GetName(), err)
		})
	})
	if _, err := c.Resource(gvr).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, c dynamic.Interface, gvr schema.GroupVersionResource, name string) {
	t.Helper()
	if err := c.Resource(gvr).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// createDefinitions installs definitions concurrently.
func createDefinitions(t *testing.T, c dynamic.Interface, specs []crdSpec) {
	t.Helper()
	work := make(chan crdSpec)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { // ends when specs are created
			for s := range work {
				if _, err := c.Resource(crd.GVR).Create(t.Context(), s.object(),
					metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, s := range specs {
		work <- s
	}
	close(work)
	wg.Wait()
}

// startTracker runs a tracker during the test and collects its events.
func startTracker(t *testing.T, config *rest.Config,
	options discovery.TrackerOptions) (*discovery.Tracker, *events) {
	t.Helper()
	tracker, err := discovery.NewTracker(config, options)
	if err != nil {
		t.Fatal(err)
	}
	e := &events{t: t, ch: make(chan discovery.Event, 100000)}
	tracker.Subscribe(func(event discovery.Event) { e.ch <- event })
	done := make(chan error, 1)
	ctx := t.Context()                       // ends before the cleanups
	go func() { done <- tracker.Run(ctx) }() // ends with ctx
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if err := tracker.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	e.receiveUntil(func(event discovery.Event) bool { return event.Action == discovery.Synced })
	return tracker, e
}

type events struct {
	t  *testing.T
	ch chan discovery.Event
}

// receiveUntil returns the events up to the first one that satisfies done.
func (e *events) receiveUntil(done func(discovery.Event) bool) []discovery.Event {
	e.t.Helper()
	patience, cancel := context.WithTimeout(e.t.Context(), 5*time.Minute)
	defer cancel()
	var got []discovery.Event
	for {
		select {
		case event := <-e.ch:
			got = append(got, event)
			if done(event) {
				return got
			}
		case <-patience.Done():
			e.t.Fatalf("timeout before the event; got %v", summary(got))
		}
	}
}

// receiveOfTypeUntil returns the events of one type up to the first one that satisfies done.
func (e *events) receiveOfTypeUntil(gr schema.GroupResource,
	done func(discovery.Event) bool) []discovery.Event {
	e.t.Helper()
	var out []discovery.Event
	e.receiveUntil(func(event discovery.Event) bool {
		if event.Type.GroupResource != gr {
			return false
		}
		out = append(out, event)
		return done(event)
	})
	return out
}

func isEstablished(e discovery.Event) bool {
	return e.Action != discovery.Removed && e.Type.Established
}
func isRemoved(e discovery.Event) bool { return e.Action == discovery.Removed }

func summary(list []discovery.Event) []string {
	var out []string
	for _, e := range list {
		out = append(out, fmt.Sprintf("%s %s", e.Action, e.Type.GroupResource))
	}
	return out
}
