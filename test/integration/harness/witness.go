package harness

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// maxRecorded limits the recorded events of a key for error messages.
const maxRecorded = 10

// Witness is an event handler that checks events of custom resources with a number in spec.value. It can
// block on demand. It is safe for concurrent use.
type Witness struct {
	name string
	// incarnation returns the current status.Status.Incarnation of the informer.
	incarnation func() int

	mu struct {
		sync.Mutex
		// gate blocks the handler until it is closed. It is nil if the handler does not block.
		gate chan struct{}
		// live has the existing objects according to the events.
		live map[string]seenVersion
		// last has the latest event of each object, including deleted ones.
		last map[types.UID]seenVersion
		// lost counts the deletions with DeletedFinalStateUnknown of each object.
		lost map[types.UID]int
		// trail has the latest events of each key.
		trail      map[string][]string
		violations []string
		counts     EventCounts
	}
}

// WitnessedObject is the observed state of an object.
type WitnessedObject struct {
	UID   types.UID
	Value int64
}

// seenVersion is an object at a resource version.
type seenVersion struct {
	WitnessedObject
	version uint64
}

// EventCounts are the numbers of received events.
type EventCounts struct {
	Events int
	// Repeats are updates with an unchanged resource version.
	Repeats int
}

var _ cache.ResourceEventHandler = (*Witness)(nil)

// NewWitness returns a witness. incarnation returns the informer's status.Status.Incarnation; it is nil for
// informers that do not have one.
func NewWitness(name string, incarnation func() int) *Witness {
	if incarnation == nil {
		incarnation = func() int { return 0 }
	}
	w := &Witness{name: name, incarnation: incarnation}
	w.mu.live = map[string]seenVersion{}
	w.mu.last = map[types.UID]seenVersion{}
	w.mu.lost = map[types.UID]int{}
	w.mu.trail = map[string][]string{}
	return w
}

// Name returns the name in error messages.
func (w *Witness) Name() string { return w.name }

// OnAdd implements cache.ResourceEventHandler.
func (w *Witness) OnAdd(obj any, _ bool) { w.record("add", "", nil, obj) }

// OnUpdate implements cache.ResourceEventHandler.
func (w *Witness) OnUpdate(before, obj any) { w.record("update", "", before, obj) }

// OnDelete implements cache.ResourceEventHandler.
func (w *Witness) OnDelete(obj any) {
	if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		w.record("lose", lost.Key, nil, lost.Obj)
		return
	}
	w.record("delete", "", nil, obj)
}

// record checks an event against the earlier ones and records it.
func (w *Witness) record(verb, key string, before, obj any) {
	u := obj.(*unstructured.Unstructured)
	key = cmp.Or(key, keyOf(u))
	w.waitIfBlocked()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.counts.Events++
	now := seenVersion{WitnessedObject: WitnessedObject{UID: u.GetUID()}}
	now.Value, _, _ = unstructured.NestedInt64(u.Object, "spec", "value")
	version, err := strconv.ParseUint(u.GetResourceVersion(), 10, 64)
	now.version = version
	complaint := w.violation(verb, key, before, u, now)
	if err != nil {
		complaint = err.Error()
	}
	if complaint != "" {
		w.mu.violations = append(w.mu.violations, fmt.Sprintf("%s: %s of %s (UID %s, version %d) %s; earlier events:\n\t%s",
			w.name, verb, key, now.UID, version,
			complaint, strings.Join(w.mu.trail[key], "\n\t")))
	}
	if verb == "update" && w.mu.live[key] == now {
		w.mu.counts.Repeats++
	}
	trail := append(w.mu.trail[key], fmt.Sprintf("%s %s=%d @%d %s", verb, now.UID, now.Value, version,
		time.Now().Format("05.000")))
	w.mu.trail[key] = trail[max(0, len(trail)-maxRecorded):]
	w.mu.last[now.UID] = now
	switch verb {
	case "lose":
		w.mu.lost[now.UID]++
		delete(w.mu.live, key)
	case "delete":
		w.mu.lost[now.UID] = 0
		delete(w.mu.live, key)
	default:
		w.mu.live[key] = now
	}
}

// violation describes why an event is invalid. An object must be added while it does not exist, and updated
// or deleted while it exists, with the same UID. The old object of an update must be the object of the
// previous event. A deleted object must not reappear, and versions must not decrease. As an exception,
// objects that were deleted with their type can reappear in the next incarnation: the informer can receive
// objects of a recreated CRD before it notices that the CRD was recreated.
func (w *Witness) violation(verb, key string, before any, u *unstructured.Unstructured,
	now seenVersion) string {
	was, live := w.mu.live[key]
	last, known := w.mu.last[now.UID]
	lost := w.mu.lost[now.UID]
	switch {
	case key != keyOf(u):
		return "has the object " + keyOf(u)
	case live == (verb == "add"):
		return map[bool]string{true: "is for an existing object", false: "is for a missing object"}[live]
	case live && was.UID != now.UID:
		return fmt.Sprintf("has another UID than the existing object, %s", was.UID)
	case verb == "update" && before.(*unstructured.Unstructured).GetResourceVersion() != strconv.
		FormatUint(was.version, 10):
		return fmt.Sprintf("has the old version %s, want %d",
			before.(*unstructured.Unstructured).GetResourceVersion(), was.version)
	case verb == "add" && known && (lost == 0 || lost >= w.incarnation()):
		return "is for a deleted object"
	case now.version < last.version:
		return fmt.Sprintf("follows version %d", last.version)
	}
	return ""
}

func keyOf(u *unstructured.Unstructured) string {
	return u.GetNamespace() + "/" + u.GetName()
}

// waitIfBlocked blocks if the witness is set to block.
func (w *Witness) waitIfBlocked() {
	w.mu.Lock()
	gate := w.mu.gate
	w.mu.Unlock()
	if gate != nil {
		<-gate // closed by ToggleBlocking or Unblock
	}
}

// ToggleBlocking makes a witness block at its next event, or unblocks it.
func (w *Witness) ToggleBlocking() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.gate == nil {
		w.mu.gate = make(chan struct{})
		return
	}
	close(w.mu.gate)
	w.mu.gate = nil
}

func (w *Witness) Unblock() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.gate != nil {
		close(w.mu.gate)
		w.mu.gate = nil
	}
}

// LiveObjects returns the existing objects by key, according to the events.
func (w *Witness) LiveObjects() map[string]WitnessedObject {
	w.mu.Lock()
	defer w.mu.Unlock()
	live := make(map[string]WitnessedObject, len(w.mu.live))
	for key, o := range w.mu.live {
		live[key] = o.WitnessedObject
	}
	return live
}

// LastStates returns the latest state of each object since Forget, including deleted objects.
func (w *Witness) LastStates() map[types.UID]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := make(map[types.UID]int64, len(w.mu.last))
	for uid, o := range w.mu.last {
		last[uid] = o.Value
	}
	return last
}

// Counts returns the numbers of received events.
func (w *Witness) Counts() EventCounts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.counts
}

// Violations returns the invalid events, each once.
func (w *Witness) Violations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	violations := w.mu.violations
	w.mu.violations = nil
	return violations
}

// Forget drops deleted objects and event trails, so that the memory of a witness is bounded.
func (w *Witness) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	existing := map[types.UID]bool{}
	for _, o := range w.mu.live {
		existing[o.UID] = true
	}
	maps.DeleteFunc(w.mu.last, func(uid types.UID, _ seenVersion) bool { return !existing[uid] })
	maps.DeleteFunc(w.mu.lost, func(uid types.UID, _ int) bool { return !existing[uid] })
	clear(w.mu.trail)
}
