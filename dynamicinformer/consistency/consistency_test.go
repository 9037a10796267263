package consistency

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	pods   = schema.GroupResource{Resource: "pods"}
	sets   = schema.GroupResource{Group: "apps", Resource: "replicasets"}
	others = schema.GroupResource{Resource: "configmaps"}
	owner  = types.NamespacedName{Namespace: "web", Name: "a"}
)

type fixed string

func (f *fixed) LastStoreSyncResourceVersion() string { return string(*f) }

func newStore(ofPods, ofSets fixed) (s *ConsistencyStore, podStore *fixed) {
	return NewConsistencyStore(map[schema.GroupResource]LastSyncRVGetter{pods: &ofPods, sets: &ofSets}),
		&ofPods
}

// TestEnsureReady compares the last write with the store.
func TestEnsureReady(t *testing.T) {
	for _, tt := range []struct {
		read, wrote string
		ready       bool
	}{
		{"9", "10", false}, {"10", "10", true}, {"11", "10", true}, {"99", "100", false},
		{"18446744073709551616", "18446744073709551617", false},
		{"", "10", true}, {"x", "10", true}, {"9", "x", true}, {"9", "", true},
	} {
		s, _ := newStore(fixed(tt.read), "1")
		s.WroteAt(owner, "1", pods, tt.wrote)
		err := s.EnsureReady(owner)
		if want := (&ConsistencyError{tt.read, tt.wrote, pods}); (err == nil) != tt.ready ||
			err != nil && *err.(*ConsistencyError) != *want {
			t.Errorf("read %q, wrote %q: EnsureReady() = %v, want ready: %v", tt.read, tt.wrote, err,
				tt.ready)
		}
	}
}

// TestRecords checks which of several writes EnsureReady compares with the store.
func TestRecords(t *testing.T) {
	s, store := newStore("10", "100")
	expect := func(step, want string) {
		t.Helper()
		var failure *ConsistencyError
		wrote := ""
		if errors.As(s.EnsureReady(owner), &failure) {
			wrote = failure.WroteRV
		}
		if wrote != want {
			t.Errorf("%s: the store lacks the write at %q, want %q", step, wrote, want)
		}
	}
	expect("nothing was written", "")
	s.WroteAt(owner, "1", others, "999")
	expect("another type", "")
	s.WroteAt(owner, "1", pods, "20")
	s.WroteAt(owner, "1", pods, "12")
	expect("the last write counts", "20")
	s.Clear(owner, "2")
	expect("another owner was deleted", "20")
	s.WroteAt(owner, "2", pods, "15")
	expect("a new owner", "15")
	*store = "15"
	expect("the store has it", "")
	*store = "14"
	expect("the record was removed", "")
	s.WroteAt(owner, "2", pods, "30")
	s.Clear(owner, "")
	expect("any owner was deleted", "")
	want := []ResourceStats{{pods, 3, "14"}, {sets, 0, "100"}}
	if diff := cmp.Diff(want, s.Stats()); diff != "" {
		t.Errorf("Stats (-want +got):\n%s", diff)
	}
}

// TestConcurrentOwners verifies EnsureReady and Clear while workers write for many owners.
func TestConcurrentOwners(t *testing.T) {
	s, _ := newStore("1000", "1000")
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() { // ends after its writes
			for n := range 200 {
				owner := types.NamespacedName{Name: fmt.Sprint(w, n%7)}
				s.WroteAt(owner, "1", pods, fmt.Sprint(900+n))
				if err := s.EnsureReady(owner); (err == nil) != (n <= 100) {
					t.Errorf("EnsureReady() after write %d = %v", n, err)
				}
				s.Stats()
				s.Clear(owner, "1")
			}
		})
	}
	wg.Wait()
	if len(s.owners) != 0 {
		t.Errorf("%d owners remain, want 0", len(s.owners))
	}
}
