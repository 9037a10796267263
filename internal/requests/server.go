// Package requests lists and watches one type, or one namespace of it, for a reflector: it classifies what
// goes wrong, paces requests by that, bounds how many lists are under way at once, and reports the outcome of
// each request.
package requests

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// Server is what the requests of a factory share.
type Server struct {
	Client  dynamic.Interface
	Limiter *Limiter
	// Restores detects that a server was restored from a backup.
	Restores *Restores

	outage outage
}

// Target is what one reflector follows.
type Target struct {
	GVR       schema.GroupVersionResource
	Namespace string // empty: all
	Form      Form
	// Tweak completes the options of each request.
	Tweak func(*metav1.ListOptions)
	// Keep tells which objects are passed on; nil: all.
	Keep func(runtime.Object) bool
	// Selection is what is read of a shard; nil: everything.
	Selection *Selection
	// Custom says that the type is known to have a CRD.
	Custom bool
	// NoBookmarks says that watches ask for no bookmarks. Then there is no watch-list either, whose end is
	// one.
	NoBookmarks bool
}

// keep tells which objects are passed on; nil: all.
func (t Target) keep() func(runtime.Object) bool {
	if t.Selection == nil {
		return t.Keep
	}
	return both(t.Keep, t.Selection.keep)
}

// Reporter records the outcomes of the requests for one target.
type Reporter interface {
	// RequestStarted records that a request is about to be sent.
	RequestStarted(verb Verb)
	// Answer records the outcome of a request; err is nil when the server accepted it. That watches are
	// accepted and closed at once, again and again, is a failure, too.
	Answer(verb Verb, err error)
	// NoContact records that the watch that was accepted last ended before an event came that could be
	// decoded: whatever answered, it was not the API server.
	NoContact()
	// WatchOpened records that a watch is open, and its initial events, if it has any, are over.
	WatchOpened()
	// Listed records how long a list took, over all pages, or until the initial events of a watch-list were
	// over.
	Listed(took time.Duration)
	// Throttled records that the server answered a request with 429.
	Throttled(verb Verb)
	// Contact records an event or a bookmark of a watch. initial says that the initial list has not ended
	// yet.
	Contact(initial bool)
}

// ListWatch returns what a reflector lists and watches target through. It is an informer.VersionAsker; with a
// Client that packs, an informer.InlineWatcher, too. forbidden is called when a list or watch is, which is
// then no failure; it may be nil.
func (s *Server) ListWatch(target Target, reports Reporter, p *Pacer,
	forbidden func(error)) cache.ListerWatcher {
	p.outage = &s.outage
	l := &listWatch{
		tweak:   target.Tweak,
		keep:    target.keep(),
		reports: reports,
		limiter: s.Limiter,
		pacer:   p,

		selection:   target.Selection,
		noBookmarks: target.NoBookmarks,
		forbidden:   forbidden,
	}
	var err error
	if l.resource, err = newResource(s.Client, target.GVR, target.Namespace, target.Form,
		target.Selection); err != nil {
		l.resource = failedResource{err}
	}
	l.continuity = s.Restores.Continuity(VersionCounter(target.GVR, target.Custom), l.serverVersion)
	lw := reflected{&cache.ListWatch{ListWithContextFunc: l.list, WatchFuncWithContext: l.watch}, l, s.Client}
	if _, ok := s.Client.(*Client); ok {
		return inlined{lw}
	}
	return lw
}

// AwaitRight waits until target may be listed and watched, which refusal says that it may not, asking now and
// then. It returns false when ctx ends before.
func (s *Server) AwaitRight(ctx context.Context, target Target, p *Pacer, refusal error) bool {
	resource, err := newResource(s.Client, target.GVR, target.Namespace, target.Form, nil)
	if err != nil {
		return false
	}
	p.outage = &s.outage
	p.record(outcome{verb: VerbList, err: refusal})
	for p.awaitRound(ctx) == nil {
		asked, err := s.probe(ctx, resource, target.Tweak)
		if err == nil {
			return true
		}
		if e := p.record(outcome{verb: VerbList, err: err, asked: asked}); e.throttles {
			s.Limiter.throttled(e.wait)
		}
	}
	return false
}

// probe is mayRead with a slot of the limiter, for as long as a list may have one: nobody waits for its
// answer, so that one that does not come must not keep the next from being asked for.
func (s *Server) probe(ctx context.Context, resource resource,
	tweak func(*metav1.ListOptions)) (asked time.Duration, err error) {
	release, err := s.Limiter.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	timed, cancel := context.WithTimeout(ctx, SlotPatience)
	defer cancel()
	request, a := newAttempt(timed, 2*SlotPatience, func() {})
	defer a.end()
	if err = mayRead(request, resource, tweak); timed.Err() != nil {
		// no failure of the connection, after which the next probe would hold the slot again
		err = timed.Err()
	}
	return a.wait, err
}

// mayRead asks for one object and for a watch, and gives the latter up at once.
func mayRead(ctx context.Context, resource resource, tweak func(*metav1.ListOptions)) error {
	request := metav1.ListOptions{Limit: 1}
	tweak(&request)
	list, err := resource.List(ctx, request)
	if err != nil {
		return err
	}
	request.Limit = 0
	if m, err := meta.ListAccessor(list); err == nil {
		request.ResourceVersion = m.GetResourceVersion() // so that no more than what is new comes
	}
	events, err := resource.Events(ctx, request)
	if err != nil {
		return err
	}
	return events.Close()
}

// Verb is a kind of request.
type Verb string

// The verbs of requests.
const (
	VerbList      Verb = "list"
	VerbListMore  Verb = "list-more" // a further page of a list
	VerbWatch     Verb = "watch"
	VerbWatchList Verb = "watch-list" // a watch that begins with a list
)

// Watches reports whether the request is a watch.
func (v Verb) Watches() bool { return v == VerbWatch || v == VerbWatchList }

// String returns the verb that users know.
func (v Verb) String() string {
	if v == VerbListMore {
		return string(VerbList)
	}
	return string(v)
}
