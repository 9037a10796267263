package requests

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/naming"
)

// RestoreDetector detects that the data of an API server was restored from an older backup. A restored server
// has a smaller resource version than before. It accepts a watch from a larger version, and sends no event
// until it has passed that version.
//
// The check runs before a watch continues after an outage: a failed request, or a watch that ended before its
// timeout. It compares the version of the watch with the version of a list of one object, a result that all
// types with the same counter share. It is safe for concurrent use.
type RestoreDetector struct {
	mu       sync.Mutex
	counters map[string]*versionCounter // by VersionCounter
}

// NewRestoreDetector returns the detector of a factory or tracker.
func NewRestoreDetector() *RestoreDetector {
	return &RestoreDetector{counters: map[string]*versionCounter{}}
}

// VersionCounter names the counter of a type's resource versions. Custom resources and the types of a
// kube-apiserver share one, named "". A kube-apiserver often stores events in another etcd. A group with a
// dot and without a CRD may belong to an aggregated API server.
func VersionCounter(gvr schema.GroupVersionResource, custom bool) string {
	switch {
	case gvr.Resource == "events":
		return gvr.Resource
	case custom || !strings.Contains(gvr.Group, "."):
		return ""
	}
	return gvr.Group
}

// Continuity returns the check of one target. ask returns the resource version of a consistent list.
func (r *RestoreDetector) Continuity(counterName string,
	ask func(context.Context) (string, error)) *Continuity {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.counters[counterName]
	if n == nil {
		n = &versionCounter{requestToken: make(chan struct{}, 1), watches: map[*Continuity]func(){}}
		r.counters[counterName] = n
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return &Continuity{counter: n, requestVersion: ask, outageSince: n.outageSince}
}

// versionCounter is the observed state of a server's counter of resource versions. Types can share it.
type versionCounter struct {
	requestToken chan struct{} // holds a token during a request

	mu       sync.Mutex
	latest   versionResponse
	restores int // number of detected restores
	// outageSince is the latest Continuity.outageSince; zero if there was no outage.
	outageSince time.Time
	// watches are the open watches, with the functions that close them.
	watches map[*Continuity]func()
}

// versionResponse is the result of a list of one object.
type versionResponse struct {
	version string
	err     error
	// began is the start of the request; zero if there was none.
	began, ended time.Time
}

const (
	// versionRequestTimeout is the timeout of a list of one object.
	versionRequestTimeout = 10 * time.Second
	// sharedAfterFailure and sharedAfterEnd are how much older than the outage a shared response can be, if
	// the outage is a failed request, or a watch that the server ended before its timeout. Restoring a backup
	// takes longer, and requests fail in the meantime.
	sharedAfterFailure = time.Second
	sharedAfterEnd     = time.Minute
)

// current returns the response to a request that began after since. isOwn reports whether current sent the
// request itself, with request. A failure is only shared with callers that have waited for it.
func (n *versionCounter) current(ctx context.Context, since time.Time,
	request func(context.Context) (string, error)) (a versionResponse, isOwn bool) {
	requested := time.Now()
	select {
	case n.requestToken <- struct{}{}:
	case <-ctx.Done():
		return versionResponse{err: context.Cause(ctx)}, false
	}
	defer func() { <-n.requestToken }()
	n.mu.Lock()
	a = n.latest
	n.mu.Unlock()
	if a.began.After(since) && (a.err == nil || !isRefusal(a.err) && !a.ended.Before(requested)) {
		return a, false
	}
	a = versionResponse{began: time.Now()}
	requestCtx, cancel := context.WithTimeout(ctx, versionRequestTimeout)
	defer cancel()
	a.version, a.err = request(requestCtx)
	if ctx.Err() == nil {
		a.ended = time.Now()
		n.mu.Lock()
		n.latest = a
		n.mu.Unlock()
	}
	return a, true
}

// recordRestore records a restore that a target with this many restores has detected, and closes all watches.
func (n *versionCounter) recordRestore(restoresSeen int) {
	n.mu.Lock()
	var open []func()
	if n.restores == restoresSeen { // another target may have been first
		n.restores++
		open = slices.AppendSeq(open, maps.Values(n.watches))
	}
	n.mu.Unlock()
	for _, closeWatch := range open {
		closeWatch()
	}
}

// isRefusal reports whether an error is a response that concerns one type only.
func isRefusal(err error) bool { return isServerResponse(err) && !apierrors.IsTooManyRequests(err) }

// isServerResponse reports whether an error is a response of a working server.
func isServerResponse(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError
}

// Continuity decides whether a target can continue from its version. It is safe for concurrent use.
type Continuity struct {
	counter        *versionCounter
	requestVersion func(context.Context) (string, error)

	// counter.mu guards the following fields.

	// restores is the counter's number of restores when the target was listed; 0 if it was not. A target that
	// continues from another's version, or from persisted state, is listed after any restore.
	restores int
	// outageSince is the earliest time at which the server may have been restored. It is zero if there was no
	// outage since the list or check.
	outageSince time.Time
	// listed is the start of the list from which the next watch continues. It is zero if the next watch
	// continues from another watch.
	listed time.Time
	// timeoutAt is when the server should end the watch. It is zero without: any end may be an outage.
	timeoutAt time.Time
}

// BeforeList must be called before a list or watch-list. It may change the options, because versions from
// before a restore have no meaning.
func (c *Continuity) BeforeList(options *metav1.ListOptions) {
	c.counter.mu.Lock()
	defer c.counter.mu.Unlock()
	if c.restores != c.counter.restores && options.Continue == "" {
		options.ResourceVersion = ""
		if options.SendInitialEvents == nil {
			options.ResourceVersionMatch = ""
		}
	}
	c.restores, c.outageSince, c.listed = c.counter.restores, time.Time{}, time.Now()
	c.recordTimeoutLocked(options)
}

func (c *Continuity) recordTimeoutLocked(options *metav1.ListOptions) {
	c.timeoutAt = time.Time{}
	if options.TimeoutSeconds != nil {
		c.timeoutAt = time.Now().Add(time.Duration(*options.TimeoutSeconds) * time.Second)
	}
}

// BeforeWatch must be called before a watch that continues from a version. After an outage it requests the
// server's version. It returns an error that causes a relist if the server was restored, and the error of the
// request if that failed.
func (c *Continuity) BeforeWatch(ctx context.Context, options *metav1.ListOptions) error {
	c.counter.mu.Lock()
	c.recordTimeoutLocked(options)
	if !c.listed.IsZero() && time.Since(c.listed) > sharedAfterFailure {
		c.startOutageLocked(c.listed) // an outage since then may not have affected a request
	}
	c.listed = time.Time{}
	restoresSeen, since := c.restores, c.outageSince
	restored := restoresSeen != c.counter.restores
	c.counter.mu.Unlock()
	switch version := options.ResourceVersion; {
	case restored:
		return &restoredFromBackupError{reached: version}
	case since.IsZero() || !naming.IsVersion(version):
		return nil
	default:
		return c.check(ctx, version, restoresSeen, since)
	}
}

func (c *Continuity) check(ctx context.Context, version string, restoresSeen int, since time.Time) error {
	a, isOwn := c.counter.current(ctx, since, c.requestVersion)
	if naming.IsOlder(a.version, version) && !isOwn { // the shared response may be older than the version
		a, isOwn = c.counter.current(ctx, time.Now(), c.requestVersion)
	}
	if naming.IsOlder(a.version, version) && !isOwn { // or the types do not share a counter
		a.version, a.err = c.requestVersion(ctx)
	}
	switch {
	case isRefusal(a.err):
		return nil // the type cannot be listed: the next watch checks again
	case a.err != nil:
		return a.err
	case naming.IsOlder(a.version, version):
		c.counter.recordRestore(restoresSeen)
		return &restoredFromBackupError{reached: version, current: a.version}
	}
	c.counter.mu.Lock()
	defer c.counter.mu.Unlock()
	if c.outageSince.Equal(since) {
		c.outageSince = time.Time{}
	}
	return nil
}

// Opened records an open watch. If a restore is detected before Closed is called, closeWatch is called once.
func (c *Continuity) Opened(closeWatch func()) {
	c.counter.mu.Lock()
	restored := c.restores != c.counter.restores
	c.counter.watches[c] = closeWatch
	c.counter.mu.Unlock()
	if restored {
		closeWatch()
	}
}

// Closed records that the watch of Opened has ended.
func (c *Continuity) Closed() {
	c.counter.mu.Lock()
	defer c.counter.mu.Unlock()
	delete(c.counter.watches, c)
}

// EndedByServer records that the server has ended the watch without an error. That is early: an outage.
func (c *Continuity) EndedByServer() {
	c.counter.mu.Lock()
	defer c.counter.mu.Unlock()
	if now := time.Now(); now.Before(c.timeoutAt) || c.timeoutAt.IsZero() {
		c.startOutageLocked(now.Add(-sharedAfterEnd))
	}
}

func (c *Continuity) startOutageLocked(since time.Time) {
	for _, outageStart := range [...]*time.Time{&c.outageSince, &c.counter.outageSince} {
		if since.After(*outageStart) {
			*outageStart = since
		}
	}
}

// Failed records that a list or watch failed. That is an outage, unless a working server has responded.
func (c *Continuity) Failed(err error) {
	if err == nil || errors.Is(err, context.Canceled) || isServerResponse(err) {
		return
	}
	c.counter.mu.Lock()
	defer c.counter.mu.Unlock()
	c.startOutageLocked(time.Now().Add(-sharedAfterFailure))
}

// restored reports whether a restore was detected after the target was listed.
func (c *Continuity) restored() bool {
	c.counter.mu.Lock()
	defer c.counter.mu.Unlock()
	return c.restores != c.counter.restores
}

// restoredFromBackupError is the error of a watch after a restore.
type restoredFromBackupError struct{ reached, current string }

func (e *restoredFromBackupError) Error() string {
	current := ""
	if e.current != "" {
		current = fmt.Sprintf(" (it is at resource version %s, this cache was at %s)", e.current, e.reached)
	}
	return "the API server was restored from an older backup" + current + ": everything is listed again"
}
