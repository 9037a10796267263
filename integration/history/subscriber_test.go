package history_test

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// subscriber is an event handler that checks what it is told, and can be made to wait.
type subscriber struct {
	name     string
	follower *follower
	handle   cache.ResourceEventHandlerRegistration
	// late tells one that joined during the history.
	late bool

	mu struct {
		sync.Mutex
		// gate is closed to let a waiting subscriber go on; nil while it does not wait.
		gate chan struct{}
		// lost are the objects whose end was a DeletedFinalStateUnknown, with how often that was.
		lost map[types.UID]int
		// live is what the subscriber has been told there is; values are those of each object that it has seen;
		// trail is what it was told of each key.
		live     map[string]seen
		values   map[types.UID]int64
		trail    map[string][]string
		nonsense []string
		events   int
	}
}

// seen is an object as a subscriber was told of it.
type seen struct {
	UID   types.UID
	Value int64
}

var _ cache.ResourceEventHandler = (*subscriber)(nil)

func newSubscriber(name string, f *follower) *subscriber {
	s := &subscriber{name: name, follower: f}
	s.mu.live = map[string]seen{}
	s.mu.values = map[types.UID]int64{}
	s.mu.lost = map[types.UID]int{}
	s.mu.trail = map[string][]string{}
	return s
}

// OnAdd implements cache.ResourceEventHandler.
func (s *subscriber) OnAdd(obj any, _ bool) { s.note("add", "", obj) }

// OnUpdate implements cache.ResourceEventHandler.
func (s *subscriber) OnUpdate(_, obj any) { s.note("update", "", obj) }

// OnDelete implements cache.ResourceEventHandler.
func (s *subscriber) OnDelete(obj any) {
	if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		s.note("lose", lost.Key, lost.Obj)
		return
	}
	s.note("delete", "", obj)
}

// note checks an event against those before: an object is added when it is not there, and updated or deleted
// only while it is, under the UID that it was added with; what has been deleted never comes back; and no value is
// older than the last. What ended with its type may come back with the next generation: a subscriber can be told of
// objects of a new definition before it is told that the definition is another one.
func (s *subscriber) note(verb, key string, obj any) {
	u := obj.(*unstructured.Unstructured)
	if key == "" {
		key = u.GetNamespace() + "/" + u.GetName()
	}
	value, _, _ := unstructured.NestedInt64(u.Object, "spec", "value")
	s.pass()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.events++
	was, live := s.mu.live[key]
	last, known := s.mu.values[u.GetUID()]
	complain := func(format string, args ...any) {
		trail := s.mu.trail[key]
		s.mu.nonsense = append(s.mu.nonsense, fmt.Sprintf("%s: %s after\n\t%s", s.name, fmt.Sprintf(format, args...),
			strings.Join(trail[max(0, len(trail)-10):], "\n\t")))
	}
	switch {
	case key != u.GetNamespace()+"/"+u.GetName():
		complain("%s under the key %s brings %s/%s", verb, key, u.GetNamespace(), u.GetName())
	case live == (verb == "add"):
		complain("%s of %s (UID %s), which is there: %v", verb, key, u.GetUID(), live)
	case live && was.UID != u.GetUID():
		complain("%s of %s brings the UID %s, before it was %s", verb, key, u.GetUID(), was.UID)
	case verb == "add" && known && (s.mu.lost[u.GetUID()] == 0 || s.mu.lost[u.GetUID()] >= s.follower.Status().Generation):
		complain("%s (UID %s) comes again after its end", key, u.GetUID())
	case value < last:
		complain("%s of %s (UID %s) brings the value %d after %d", verb, key, u.GetUID(), value, last)
	}
	s.mu.trail[key] = append(s.mu.trail[key], fmt.Sprintf("%s %s=%d @%s %s", verb, u.GetUID(), value, u.GetResourceVersion(), time.Now().Format("05.000")))
	s.mu.values[u.GetUID()] = value
	switch verb {
	case "lose":
		s.mu.lost[u.GetUID()]++
		delete(s.mu.live, key)
	case "delete":
		s.mu.lost[u.GetUID()] = 0
		delete(s.mu.live, key)
	default:
		s.mu.live[key] = seen{UID: u.GetUID(), Value: value}
	}
}

// pass waits where the subscriber is being slow.
func (s *subscriber) pass() {
	s.mu.Lock()
	gate := s.mu.gate
	s.mu.Unlock()
	if gate != nil {
		<-gate // closed by toggle or goOn, which the end of the round calls at the latest
	}
}

// toggle makes a subscriber wait at its next event, or lets it go on.
func (s *subscriber) toggle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.gate == nil {
		s.mu.gate = make(chan struct{})
		return
	}
	close(s.mu.gate)
	s.mu.gate = nil
}

// goOn lets a subscriber go on if it waits.
func (s *subscriber) goOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.gate != nil {
		close(s.mu.gate)
		s.mu.gate = nil
	}
}
