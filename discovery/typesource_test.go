package discovery

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
)

func TestInformerType(t *testing.T) {
	gr := schema.GroupResource{Group: "example.com", Resource: "ws"}
	watchable := []string{"get", "list", "watch"}
	got := informerType(Type{
		GroupResource: gr, Kind: "W", Scope: Namespaced, UID: "1", Established: true, Terminating: true,
		Versions: []TypeVersion{
			{Name: "v2", Served: true, Verbs: watchable}, {Name: "v1", Served: true, Verbs: watchable},
			{Name: "v1beta1", Served: true, Verbs: []string{"list"}}, {Name: "v1alpha1", Verbs: watchable},
		},
	})
	want := dynamicinformer.Type{
		GroupResource: gr, Kind: "W", Namespaced: true, UID: "1", Established: true, Terminating: true,
		Versions: []string{"v2", "v1"}, Unwatchable: []string{"v1beta1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the type (-want +got):\n%s", diff)
	}
}

// TestTypeSourceErr: a factory can say why it does not know yet which types there are.
func TestTypeSourceErr(t *testing.T) {
	server := newTypeServer(t, sampleGroups()...)
	tracker := server.tracker(t, TrackerOptions{})
	source := tracker.Types().(dynamicinformer.TypeSourceErr)
	if err := source.Err(); err != nil {
		t.Errorf("before the start: %v", err)
	}
	run(t, tracker)
	if err := tracker.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := source.Err(); err != nil {
		t.Errorf("synced: %v", err)
	}

	down := newTypeServer(t, sampleGroups()...)
	failing := down.tracker(t, TrackerOptions{})
	down.Close()
	run(t, failing)
	for failing.Status().Discovery.LastError == nil {
		runtime.Gosched()
	}
	if err := failing.Types().(dynamicinformer.TypeSourceErr).Err(); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("with the server down: %v", err)
	}
}
