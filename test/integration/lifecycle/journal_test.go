package lifecycle_test

import (
	"fmt"
	"slices"
	"sync"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// journal is an event handler that records and checks its events. An object must be added while it does not
// exist, and updated or deleted while it exists, with the same UID.
type journal struct {
	fixture *fixture

	mu struct {
		sync.Mutex
		events     []string
		live       map[string]types.UID
		violations []string
		changed    chan struct{}
	}
	read int
}

var _ cache.ResourceEventHandler = (*journal)(nil)

func newJournal(s *fixture) *journal {
	j := &journal{fixture: s}
	j.mu.live = map[string]types.UID{}
	j.mu.changed = make(chan struct{})
	s.Cleanup(func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		for _, line := range j.mu.violations {
			s.Error(line)
		}
	})
	return j
}

func (j *journal) OnAdd(obj any, _ bool) { j.record("add", obj) }

func (j *journal) OnUpdate(_, obj any) { j.record("update", obj) }

// OnDelete implements cache.ResourceEventHandler. The deletion of a type and a missed deletion are recorded
// as deletions.
func (j *journal) OnDelete(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	j.record("delete", obj)
}

// record stores an event, and a violation if it contradicts the earlier events.
func (j *journal) record(verb string, obj any) {
	o := obj.(*unstructured.Unstructured)
	event := verb + " " + o.GetName()
	j.mu.Lock()
	defer j.mu.Unlock()
	uid, live := j.mu.live[o.GetName()]
	if live != (verb != "add") || live && uid != o.GetUID() {
		j.mu.violations = append(j.mu.violations, fmt.Sprintf("%s (UID %s) after %q; the known UID is %q, exists: %v",
			event, o.GetUID(), j.mu.events, uid, live))
	}
	if j.mu.live[o.GetName()] = o.GetUID(); verb == "delete" {
		delete(j.mu.live, o.GetName())
	}
	j.mu.events = append(j.mu.events, event)
	close(j.mu.changed)
	j.mu.changed = make(chan struct{})
}

// uid returns the UID of an existing object.
func (j *journal) uid(name string) types.UID {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mu.live[name]
}

// await waits until the events meet a condition.
func (j *journal) await(condition string, met func(events []string, live map[string]types.UID) bool) {
	j.fixture.Helper()
	for {
		j.mu.Lock()
		done, changed, events := met(j.mu.events, j.mu.live), j.mu.changed, slices.Clone(j.mu.events)
		j.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-j.fixture.ctx.Done():
			j.fixture.Fatalf("timed out waiting for %s; the events so far: %q", condition, events)
		}
	}
}

// awaitLive waits until an object exists, and ignores other events.
func (j *journal) awaitLive(name string) {
	j.fixture.Helper()
	j.await(name, func(_ []string, live map[string]types.UID) bool { return live[name] != "" })
}

// expect waits for events in any order, and fails the test if others arrive. Earlier calls have consumed
// earlier events.
func (j *journal) expect(want ...string) {
	j.fixture.Helper()
	var got []string
	j.await(fmt.Sprintf("%q", want), func(events []string, _ map[string]types.UID) bool {
		if len(events) < j.read+len(want) {
			return false
		}
		got = slices.Clone(events[j.read : j.read+len(want)])
		return true
	})
	j.read += len(want)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		j.fixture.Fatalf("events (-want +got):\n%s", diff)
	}
}

// rest returns the events after the expected ones.
func (j *journal) rest() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	takeRest := slices.Clone(j.mu.events[j.read:])
	j.read = len(j.mu.events)
	return takeRest
}

// expectNothing checks that no event followed the expected ones.
func (j *journal) expectNothing() {
	j.fixture.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if extra := j.mu.events[j.read:]; len(extra) != 0 {
		j.fixture.Errorf("unexpected events: %q", extra)
	}
}

// expectNever checks that no unwanted event followed the expected ones.
func (j *journal) expectNever(unwanted ...string) {
	j.fixture.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, event := range j.mu.events[j.read:] {
		if slices.Contains(unwanted, event) {
			j.fixture.Errorf("unexpected event: %q", event)
		}
	}
}
