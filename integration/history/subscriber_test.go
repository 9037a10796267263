package history_test

import (
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/integration/harness"
)

// subscriber is a witness of an informer.
type subscriber struct {
	*harness.Witness
	follower *follower
	handle   cache.ResourceEventHandlerRegistration
	// late marks a subscriber that joined during the history.
	late bool
}

// check fails the test for inconsistent events and for objects that were never written. It returns the number
// of events.
func (s *subscriber) check(t *participants) int {
	t.Helper()
	for _, line := range s.Violations() {
		t.Error(line)
	}
	for uid, value := range s.Last() {
		if o := s.follower.kind.known[uid]; o == nil || value > o.value {
			t.Errorf("%s received the value %d of %s, which was never written: %+v", s.Name(), value, uid, o)
		}
	}
	return s.Counts().Events
}
