package live

import (
	"context"
	"errors"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// historyGap is the time before the history of an epoch. Clients of an earlier process continue from there.
// The cache does not know the changes in the gap, but the API server can confirm that there are none.
type historyGap struct {
	epoch int
	// No object changed from version unchangedSince until historyStart, where the history begins.
	unchangedSince, historyStart uint64
	// lostVersion is the latest version from which clients cannot continue: the API server has compacted it,
	// or an object changed after it.
	lostVersion uint64
}

func (t *typeCache) gapLocked(history dynamicinformer.History) *historyGap {
	if t.mu.gap.epoch != history.Epoch {
		t.mu.gap = historyGap{epoch: history.Epoch, unchangedSince: history.EpochStart,
			historyStart: history.EpochStart}
	}
	return &t.mu.gap
}

// oldest returns the version since which the changes of a history are known.
func (t *typeCache) oldest(history dynamicinformer.History) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := t.gapLocked(history); history.Oldest == g.historyStart {
		return g.unchangedSince
	}
	return history.Oldest
}

// isGapKnown reports whether it is known if a client can continue from a version.
func (t *typeCache) isGapKnown(history dynamicinformer.History, version uint64) bool {
	if version >= t.oldest(history) || history.Oldest != history.EpochStart {
		return true
	}
	if relists := t.informer.Status().Relists; relists.Restored+relists.TooLarge > 0 {
		return true // the API server can have used the versions of lost changes again
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return version <= t.gapLocked(history).lostVersion
}

// awaitGapCheck blocks until it is known whether a client can continue from a version. If the API server
// does not answer in time, the client cannot continue.
//
// One request to the API server at a time serves all waiting clients.
func (c *collection) awaitGapCheck(ctx context.Context, version uint64) {
	ctx, cancel := context.WithTimeout(ctx, c.server.options.FreshTimeout)
	defer cancel()
	for h := c.informer.History(); h.Epoch == c.epoch && !c.isGapKnown(h, version); h = c.informer.History() {
		c.mu.Lock()
		c.mu.gapWaiters[version]++
		c.mu.Unlock()
		answered := c.checkGap(ctx, h, version)
		c.mu.Lock()
		if c.mu.gapWaiters[version]--; c.mu.gapWaiters[version] == 0 {
			delete(c.mu.gapWaiters, version)
		}
		c.mu.Unlock()
		if !answered {
			return
		}
	}
}

// checkGap asks the API server whether objects changed during the gap. It skips the request if another
// client's check has already answered. It returns false if there was no answer.
func (c *collection) checkGap(ctx context.Context, history dynamicinformer.History, version uint64) bool {
	select {
	case c.gapCheckToken <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	defer func() { <-c.gapCheckToken }()
	if c.isGapKnown(history, version) {
		return true
	}
	c.mu.Lock()
	from, to := c.nextGapCheckLocked(history, version)
	c.mu.Unlock()
	lastChange, err := c.watchTo(ctx, from, to)
	var watchErr *watchError
	c.mu.Lock()
	defer c.mu.Unlock()
	switch g := c.gapLocked(history); {
	case err == nil:
		g.unchangedSince = min(g.unchangedSince, lastChange)
		if lastChange > from {
			g.lostVersion = max(g.lostVersion, lastChange-1)
		}
	case apierrors.IsResourceExpired(err), errors.As(err, &watchErr) && watchErr.code == http.StatusGone:
		g.lostVersion = max(g.lostVersion, from)
	default:
		return false
	}
	return true
}

// nextGapCheckLocked returns the versions between which the next request watches. It begins at the smallest
// awaited version, because one request usually answers all clients. After the API server has compacted a
// version, each request halves the remaining gap.
func (c *collection) nextGapCheckLocked(history dynamicinformer.History, version uint64) (from, to uint64) {
	gap := c.gapLocked(history)
	candidates := []uint64{version}
	for awaited := range c.mu.gapWaiters {
		if awaited > gap.lostVersion && awaited < gap.unchangedSince {
			candidates = append(candidates, awaited)
		}
	}
	slices.Sort(candidates)
	if gap.lostVersion == 0 {
		return candidates[0], gap.unchangedSince
	}
	return candidates[len(candidates)/2], gap.unchangedSince
}
