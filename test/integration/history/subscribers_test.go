package history_test

import (
	"fmt"
	"slices"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// excludedNamespace is the namespace that temporary informers exclude, so that they have other options.
const excludedNamespace = "nowhere"

func (w *fixture) subscribeTo(f *follower, late bool) *subscriber {
	w.Helper()
	w.nextSubscriber++
	s := &subscriber{follower: f, late: late,
		Witness: harness.NewWitness(fmt.Sprintf("subscriber %d of %s", w.nextSubscriber, f.name),
			func() int { return f.Status().Incarnation })}
	var err error
	if s.handle, err = f.AddEventHandler(s); err != nil {
		w.Fatal(err)
	}
	w.subscribers = append(w.subscribers, s)
	return s
}

// subscribe adds a subscriber, which may block from the start.
func (w *fixture) subscribe(f *follower, slow bool) {
	w.Helper()
	if w.countLate() >= lateSubscribers {
		return
	}
	if s := w.subscribeTo(f, true); slow {
		s.ToggleBlocking()
	}
}

func (w *fixture) countLate() int {
	n := 0
	for _, s := range w.subscribers {
		if s.late {
			n++
		}
	}
	return n
}

// unsubscribe removes a late subscriber.
func (w *fixture) unsubscribe(s *subscriber) {
	w.Helper()
	if !s.late {
		return
	}
	if err := s.follower.RemoveEventHandler(s.handle); err != nil {
		w.Fatal(err)
	}
	w.checkAndForget(s)
}

// checkAndForget checks and removes a subscriber that gets no more events.
func (w *fixture) checkAndForget(s *subscriber) {
	w.Helper()
	s.Unblock()
	w.removedEvents += s.check(w)
	w.subscribers = slices.DeleteFunc(w.subscribers, func(other *subscriber) bool { return other == s })
}

// acquireTemporary acquires a temporary informer of a type. All temporary informers of a type share the
// informer.
func (w *fixture) acquireTemporary(factory int, k *kind) {
	w.Helper()
	temporary := 0
	for _, f := range w.followers {
		if f.handle != nil {
			temporary++
		}
	}
	if temporary >= maxTemporaryInformers {
		return
	}
	options := dynamicinformer.ResourceOptions{
		Namespaces: dynamicinformer.ExceptNamespaces(excludedNamespace),
	}
	handle, err := w.factories[factory].Acquire(k.gvr, options)
	if err != nil {
		w.Fatal(err)
	}
	f := &follower{
		Informer: handle.Informer(), kind: k, handle: handle,
		faults: w.followers[factory*len(w.kinds)].faults,
		name:   fmt.Sprintf("temporary informer of %s from factory %d", k.name, factory),
	}
	w.followers = append(w.followers, f)
	w.subscribeTo(f, false)
}

// releaseTemporary releases a temporary informer with its subscribers.
func (w *fixture) releaseTemporary(f *follower) {
	w.Helper()
	if f.handle == nil {
		return
	}
	for _, s := range slices.Clone(w.subscribers) {
		if s.follower == f {
			if err := f.RemoveEventHandler(s.handle); err != nil {
				w.Fatal(err)
			}
			w.checkAndForget(s)
		}
	}
	f.handle.Release()
	w.followers = slices.DeleteFunc(w.followers, func(other *follower) bool { return other == f })
}
