package informer

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/crdcache/crdcache/internal/naming"
)

const (
	// probeDelay is the time after which a wait no longer relies on the next event of the watch.
	probeDelay   = 250 * time.Millisecond
	probeTimeout = 10 * time.Second
	// probePause is the minimum time between probes, and that until the next at the awaited version.
	probePause = 500 * time.Millisecond
	// catchUpTimeout is the time until the next probe for the same waits. A bookmark of the short watch has
	// arrived by then, or will not arrive.
	catchUpTimeout = 3500 * time.Millisecond
	// listAfter is the time after the first probe of a wait at which the type is listed.
	listAfter = 6 * time.Second
	// maxComparedObjects is the number of objects up to which a cache that lags is compared with a list. This
	// takes some hundredths of a second, and a bookmark takes more than one second.
	maxComparedObjects = 5000
)

// catchUpSeconds is the timeout of a short watch. A server sends a bookmark two seconds before the end of a
// watch, and otherwise about once a minute. A watch of less than three seconds receives no bookmark.
var catchUpSeconds = int64(3)

// startProbes marks a wait as overdue.
func (i *Informer) startProbes(w *versionWait) {
	i.mu.Lock()
	defer i.mu.Unlock()
	w.overdue = true
	switch {
	case i.mu.state == StateStopped:
	case i.mu.waits.probing && !w.probeSent:
		i.mu.waits.notify()
	case !i.mu.waits.probing:
		i.mu.waits.probing, i.mu.waits.changed = true, make(chan struct{}, 1)
		i.workers.Go(i.runProbes) // ends with the last overdue wait, or with Stop
	}
}

// runProbes probes for the overdue waits until there are none.
//
// A consistent list that begins after a wait returns the server's version. If that is older than the awaited
// version, the version is lost. Otherwise it does not prove that the watch has delivered the events up to it:
// only the watch itself does, with an event or a bookmark. Streams that are behind are therefore interrupted.
// They continue with a short watch, which receives a bookmark after one to two seconds. kube-apiserver omits
// bookmarks that are not newer than the last event of the type, even if that event is not selected. The
// server must therefore have passed the awaited version, which happens with any write. On an idle server, the
// type is listed.
func (i *Informer) runProbes() {
	ctx := wait.ContextForChannel(i.stopping)
	backoff := standardBackoff()
	for {
		minPause, maxPause := probePause, probePause
		waits, w, ok := i.waitsToProbe()
		if !ok {
			return
		}
		if w != nil {
			timed, end := context.WithTimeout(ctx, probeTimeout)
			compares := slices.ContainsFunc(waits, func(w *versionWait) bool { return w.isFresh })
			version, err := w.probe(timed, compares)
			end()
			maxPause = i.applyProbe(waits, version, err)
			if err == nil {
				backoff = standardBackoff()
			} else {
				seconds, _ := apierrors.SuggestsClientDelay(err)
				minPause = max(backoff.Step(), time.Duration(seconds)*time.Second)
			}
		}
		if !i.awaitNextProbe(minPause, maxPause) {
			return
		}
	}
}

// probe returns the resource version of the server. If compares is set and the content of the stream is the
// server's at that version, the stream has reached it.
func (w *inlineWatch) probe(ctx context.Context, compares bool) (version string, err error) {
	i := w.informer
	version, err = w.lw.Probe(ctx)
	i.mu.Lock()
	reached, opaque := hasReached(w.observedVersion, version)
	i.mu.Unlock()
	if err != nil || reached || opaque != nil || !compares || !w.isComplete() || !i.store.StoresObjects() ||
		i.store.Snapshot().Len() > maxComparedObjects {
		return version, err
	}
	listed, version, err := w.listedDigest(ctx, metav1.ListOptions{Limit: maxComparedObjects}, nil)
	if err != nil {
		return "", err
	}
	if _, cached, untransformed := w.cachedDigest(); listed == cached && len(untransformed) == 0 {
		i.mu.Lock()
		defer i.mu.Unlock()
		w.observedVersion = laterVersion(w.observedVersion, version)
	}
	return version, nil
}

// awaitNextProbe waits until the next probe: for at least minPause and at most maxPause. It returns earlier
// than maxPause if another wait becomes overdue, and at once if that is for the current state, because such
// waits fail with the probe. It returns false after Stop.
func (i *Informer) awaitNextProbe(minPause, maxPause time.Duration) bool {
	first, last := time.NewTimer(minPause), time.NewTimer(max(minPause, maxPause))
	defer first.Stop()
	defer last.Stop()
	for isDue, isChanged := false, false; !isChanged || !isDue && !i.awaitsFreshness(); {
		select {
		case <-first.C:
			isDue = true
		case <-last.C:
			return true
		case <-i.mu.waits.changed:
			isChanged = true
		case <-i.stopping:
			return false
		}
	}
	return true
}

// awaitsFreshness reports whether a wait for the current state needs a probe.
func (i *Informer) awaitsFreshness() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.ContainsFunc(i.mu.waits.pending,
		func(w *versionWait) bool { return w.isFresh && !w.probeSent })
}

// waitsToProbe returns all waits, and a running stream or nil. It returns false if no wait is overdue.
func (i *Informer) waitsToProbe() (pending []*versionWait, stream *inlineWatch, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.mu.waits.anyOverdue() || i.mu.state == StateStopped {
		i.mu.waits.probing = false
		return nil, nil, false
	}
	for _, w := range i.mu.waits.pending {
		w.probeSent = true
	}
	select {
	case <-i.mu.waits.changed:
	default:
	}
	if len(i.mu.streams) > 0 {
		stream = i.mu.streams[0]
	}
	return slices.Clone(i.mu.waits.pending), stream, true
}

// applyProbe applies the result of a probe that began after the waits. It returns the time until the next.
func (i *Informer) applyProbe(waits []*versionWait, version string, failure error) time.Duration {
	var behindStreams []*inlineWatch
	i.mu.Lock()
	i.failWaitsLocked(func(w *versionWait) error {
		switch {
		case !slices.Contains(waits, w), failure != nil && !w.isFresh:
			return nil
		case failure != nil:
			return failure
		case !naming.IsVersion(version):
			return ErrOpaqueVersion
		case w.version == "":
			w.version, w.deleted = version, true
		case naming.IsOlder(version, w.version):
			return ErrVersionLost
		}
		if w.probed.IsZero() {
			w.probed = time.Now()
		}
		return nil
	})
	i.releaseWaitsLocked()
	mustList, serverPassed := false, false
	for _, w := range i.mu.waits.pending {
		serverPassed = serverPassed || w.version == version && w.deleted || naming.IsOlder(w.version, version)
		if !w.probed.IsZero() && time.Since(w.probed) > listAfter {
			mustList, w.probed = true, time.Now()
		}
	}
	for _, s := range i.mu.streams {
		if s.isBehindLocked() && (mustList || serverPassed && !s.bookmarkDue) {
			if mustList {
				s.requestListLocked()
			}
			behindStreams = append(behindStreams, s)
		}
	}
	i.mu.Unlock()
	for _, s := range behindStreams {
		s.lw.Interrupt()
	}
	if !serverPassed {
		return probePause
	}
	return catchUpTimeout
}

func (i *Informer) addStream(w *inlineWatch) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.streams = append(i.mu.streams, w)
	i.streamsChangedLocked()
}

func (i *Informer) removeStream(w *inlineWatch) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.streams = slices.DeleteFunc(i.mu.streams, func(other *inlineWatch) bool { return other == w })
	endRequests(slices.Concat(w.lists.next, w.lists.running), false)
}

// goalLocked returns the version that streams have to reach for probed waits; empty if there is none.
func (i *Informer) goalLocked() string {
	goal := ""
	for _, w := range i.mu.waits.pending {
		if !w.probed.IsZero() && (goal == "" || naming.IsOlder(goal, w.version)) {
			goal = w.version
		}
	}
	return goal
}

// isBehindLocked reports whether the stream has not reached the goal.
func (w *inlineWatch) isBehindLocked() bool {
	goal := w.informer.goalLocked()
	if goal == "" {
		return false
	}
	reached, err := hasReached(w.observedVersion, goal)
	return !reached && err == nil
}

// beginsCatchUp reports whether the next watch must be a short one, and records that in bookmarkDue.
func (w *inlineWatch) beginsCatchUp() bool {
	i := w.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	w.bookmarkDue = w.isConfirming() || len(i.mu.waits.pending) > 0 && w.isBehindLocked()
	return w.bookmarkDue
}
