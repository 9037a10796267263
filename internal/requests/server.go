// Package requests makes the list and watch requests of one type, or one namespace of it, for a reflector. It
// classifies failures, paces requests accordingly, limits concurrent lists, and reports each outcome.
package requests

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// Server is the state that the requests of a factory share.
type Server struct {
	Client  dynamic.Interface
	Limiter *Limiter
	// RestoreDetector detects that a server was restored from a backup.
	RestoreDetector *RestoreDetector

	outage  sharedOutage
	watches watchRecord // of clients other than Client
}

// Target describes the objects that one reflector reads.
type Target struct {
	GVR       schema.GroupVersionResource
	Namespace string // empty means all
	Objects   ObjectOptions
	// Tweak completes the options of each request.
	Tweak func(*metav1.ListOptions)
	// Filter filters the objects. Optional.
	Filter func(runtime.Object) bool
	// Selects reports whether an object is selected, which may change with each event. Optional.
	Selects func(runtime.Object) bool
	// Selection selects objects by hash. Nil means all objects.
	Selection *Selection
	// Custom states that the type is known to have a CRD.
	Custom bool
	// ListOnly states that the type is known to support no watch.
	ListOnly bool
	// NoBookmarks disables bookmarks, and thereby watch-lists, which end with one.
	NoBookmarks bool
}

// sendsBookmarks reports whether the server is known to send bookmarks about once a minute: a kube-apiserver
// does, for types with a watch cache. Other API servers may send none.
func (t Target) sendsBookmarks() bool {
	group := t.GVR.Group
	return !t.NoBookmarks && t.GVR.Resource != "events" &&
		(t.Custom || !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io"))
}

// combinedFilter returns the filter by Filter and Selection, or nil.
func (t Target) combinedFilter() func(runtime.Object) bool {
	if t.Selection == nil {
		return t.Filter
	}
	return acceptBoth(t.Filter, t.Selection.admitsObject)
}

// Reporter receives the outcomes of the requests for one target.
type Reporter interface {
	// RelistRequested is called before a list that the informer needs, although the watch could continue.
	RelistRequested()
	// RequestStarted is called before a request is sent.
	RequestStarted(verb Verb)
	// RequestEnded is called with the outcome of a request. err is nil if the server accepted it. Watches
	// that are repeatedly closed immediately are also reported as a failure.
	RequestEnded(verb Verb, err error)
	// NoContact is called if the last accepted watch ended before an event could be decoded. The response
	// then did not come from an API server.
	NoContact()
	// WatchOpened is called when a watch is open and its initial events, if any, are complete.
	WatchOpened()
	// ListCompleted is called with the duration of all pages of a list, or of a watch-list's initial events.
	ListCompleted(took time.Duration)
	// Throttled is called when the server has said when to repeat the request. This is not a failure.
	Throttled(verb Verb)
	// Remark sets a remark about a synced target, by reason. An empty message removes it.
	Remark(reason status.Reason, message string)
	// RecordContact is called for an event or bookmark of a watch. initial is true during the initial list.
	RecordContact(initial bool)
}

// ListWatch returns the requests for target, an informer.InlineWatcher. forbidden, if set, is called when a
// list or watch is forbidden, which is then not reported as a failure.
func (s *Server) ListWatch(target Target, reports Reporter, p *Pacer, forbidden func(error)) *listWatch {
	p.outage, p.watches, p.facts.listOnly = &s.outage, &s.watches, target.ListOnly
	if client, ok := s.Client.(*Client); ok {
		p.watches = client.watches
	}
	l := &listWatch{
		Target:    target,
		client:    s.Client,
		resource:  newResource(s.Client, target.GVR, target.Namespace, target.Objects, target.Selection),
		filter:    target.combinedFilter(),
		reports:   reports,
		limiter:   s.Limiter,
		pacer:     p,
		forbidden: forbidden,
	}
	l.continuity = s.RestoreDetector.Continuity(VersionCounter(target.GVR, target.Custom),
		func(ctx context.Context) (string, error) { // not rate-limited, because watches wait for it
			return l.reportedVersion(ctx, false)
		})
	return l
}

// AwaitPermission waits until target can be listed, and watched unless it is ListOnly. It sends periodic
// requests, because earlier ones failed with refusal. It returns false if ctx ends first.
func (s *Server) AwaitPermission(ctx context.Context, target Target, p *Pacer, refusal error) bool {
	resource := newResource(s.Client, target.GVR, target.Namespace, target.Objects, nil)
	p.outage = &s.outage
	p.record(requestOutcome{verb: VerbList, err: refusal})
	for p.awaitRound(ctx) == nil {
		retryAfter, err := s.probe(ctx, resource, target)
		if err == nil {
			return true
		}
		if e := p.record(requestOutcome{verb: VerbList, err: err,
			retryAfter: retryAfter}); e.throttleLimiter {
			s.Limiter.throttled(e.wait)
		}
	}
	return false
}

// probe calls mayRead with a slot of the limiter. It ends at the time limit of the slot, so that a missing
// response does not prevent the next probe.
func (s *Server) probe(ctx context.Context, resource resource,
	target Target) (retryAfter time.Duration, err error) {
	release, err := s.Limiter.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	timed, cancel := context.WithTimeout(ctx, SlotTimeout)
	defer cancel()
	request, a := newAttempt(timed, 2*SlotTimeout)
	defer a.end()
	if err = mayRead(request, resource, target); timed.Err() != nil {
		// not a connection failure, after which the next probe would hold the slot again
		err = timed.Err()
	}
	return a.retryAfter, err
}

// mayRead requests one object and a watch, which it closes immediately.
func mayRead(ctx context.Context, resource resource, target Target) error {
	request := metav1.ListOptions{Limit: 1}
	target.Tweak(&request)
	list, err := resource.List(ctx, request, true)
	if err != nil || target.ListOnly {
		return err
	}
	request.Limit = 0
	if m, err := meta.ListAccessor(list); err == nil {
		request.ResourceVersion = m.GetResourceVersion() // so that only new events are sent
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
	VerbGet       Verb = "get"        // a read of one object, which no Reporter reports
)

// Watches reports whether the request is a watch.
func (v Verb) Watches() bool { return v == VerbWatch || v == VerbWatchList }

// String returns the Kubernetes verb.
func (v Verb) String() string {
	if v == VerbListMore {
		return string(VerbList)
	}
	return string(v)
}
