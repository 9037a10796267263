package discovery

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

func TestInformerType(t *testing.T) {
	gr := schema.GroupResource{Group: "example.com", Resource: "ws"}
	watchable := []string{"get", "list", "watch"}
	got := informerType(Type{
		GroupResource: gr, Kind: "W", Scope: Namespaced, UID: "1", Established: true, Terminating: true,
		Versions: []TypeVersion{
			{Name: "v2", Served: true, Verbs: watchable}, {Name: "v1", Served: true, Verbs: watchable},
			{Name: "v1beta1", Served: true, Verbs: []string{"list"}},
			{Name: "v1beta2", Served: true, Verbs: []string{"create", "watch"}}, {Name: "v1alpha1", Verbs: watchable},
		},
	})
	want := typesource.Type{
		GroupResource: gr, Kind: "W", Namespaced: true, UID: "1", Established: true, Terminating: true,
		Versions: []string{"v2", "v1"}, ListOnly: []string{"v1beta1"}, Unlistable: []string{"v1beta2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the type (-want +got):\n%s", diff)
	}
}

// TestTypeSourceReportsUnknownGroups verifies that an informer and WaitForSync wait for a type if discovery
// of its group is stale from the start. Names and patterns resolve to the members known before.
func TestTypeSourceReportsUnknownGroups(t *testing.T) {
	server := newTypeServer(t,
		append(sampleGroups(), group{Name: "agg.io", Versions: []groupVersion{{Name: "v1", Stale: true}}})...)
	tracker := server.tracker(t, TrackerOptions{PollInterval: time.Hour})
	runTracker(t, tracker)
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	factory, err := dynamicinformer.New(dynamicinformer.Options{Client: client, Types: tracker.Types()})
	if err != nil {
		t.Fatal(err)
	}
	informer, err := factory.ForResource(schema.GroupVersionResource{Group: "agg.io", Version: "v1",
		Resource: "as"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := factory.Start(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = factory.Shutdown(ctx) }()
	await := func(reason status.Reason) status.Status {
		for {
			status, changed := informer.StatusChange()
			if status.Reason == reason {
				return status
			}
			select {
			case <-changed:
			case <-ctx.Done():
				t.Fatalf("the status is %v, want %s", status, reason)
			}
		}
	}
	if status := await(status.ReasonGroupUnknown); status.Settled() ||
		!errors.Is(status.LastError, ErrStale) {
		t.Errorf("Status() = %v, want not settled with ErrStale", status)
	}
	server.discovery.changeGroups(func(groups *[]group, _ map[string]int) { *groups = sampleGroups() })
	tracker.Refresh()
	if status := await(status.ReasonNotInstalled); !status.Settled() {
		t.Errorf("Status() = %v, want settled", status)
	}
	listener := listen(t, tracker)
	server.discovery.changeGroups(func(groups *[]group, _ map[string]int) {
		*groups = append(*groups, oneGroup("agg.io", "as"))
	})
	tracker.Refresh()
	listener.awaitEvent("Added as.agg.io")
	server.discovery.changeGroups(func(groups *[]group, _ map[string]int) {
		*groups = append(sampleGroups(),
			group{Name: "agg.io", Versions: []groupVersion{{Name: "v1", Stale: true}}})
	})
	tracker.Refresh()
	listener.awaitEvent("FailuresChanged ")
	resolved, err := tracker.Snapshot().Catalog().Resolve("*.agg.io")
	if err != nil || len(resolved.Resources) != 1 || !resolved.Resources[0].Stale {
		t.Errorf("the pattern is resolved to %+v, %v, want one stale type", resolved, err)
	}
}

// problems receives the reasons why a source cannot report all types.
type problems struct{ errs chan error }

func (problems) SetType(typesource.Type)                      {}
func (problems) RemoveType(schema.GroupResource, bool)        {}
func (p problems) SetUnknown(u map[schema.GroupVersion]error) { p.errs <- u[schema.GroupVersion{}] }
func (problems) SetComplete()                                 {}

// TestTypeSourceExplains verifies that listeners, also later ones, receive the reason why the types are not
// known, until they are.
func TestTypeSourceExplains(t *testing.T) {
	server := newTypeServer(t, sampleGroups()...)
	tracker := server.tracker(t, TrackerOptions{})
	setCRDStatus := func(code int) {
		server.mu.Lock()
		defer server.mu.Unlock()
		server.mu.failWith[crdPath] = code
	}
	subscribe := func() problems {
		p := problems{make(chan error, 1000)}
		t.Cleanup(tracker.Types().Subscribe(p))
		if <-p.errs == nil {
			t.Error("after a failed list, SetUnknown received no error")
		}
		return p
	}
	setCRDStatus(http.StatusInternalServerError)
	runTracker(t, tracker)
	listeners := []problems{subscribe(), subscribe()}
	setCRDStatus(0)
	for _, p := range listeners {
		for err := range p.errs {
			if err == nil {
				break
			}
		}
	}
}
