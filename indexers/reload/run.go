package reload

import (
	"context"
	"slices"
	"time"

	"github.com/crdcache/crdcache/indexers"
)

// maxRetry is the maximum interval between two attempts to apply a rejected config.
const maxRetry = time.Minute

// Run reads the files in each PollInterval until ctx ends, and applies each new config. A changed file takes
// effect when two reads agree, so that it is not read while it is being written, nor between two files of a
// ConfigMap, which are swapped at once. It always returns nil.
func (w *Watcher) Run(ctx context.Context) error {
	ticker := time.NewTicker(w.options.PollInterval)
	defer ticker.Stop()
	previous := indexers.ReadSources(w.options.Files...)
	retryAt, failures := time.Time{}, 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		sources := indexers.ReadSources(w.options.Files...)
		isSettled, isNew := slices.EqualFunc(sources, previous, sameSource), w.isNew(sources)
		if previous = sources; !isSettled || !isNew && time.Now().Before(retryAt) {
			continue
		}
		if isNew {
			failures = 0
		}
		if w.reload(ctx, sources).Err != nil {
			retryAt = time.Now().Add(min(w.options.Retry<<min(failures, 20), max(w.options.Retry, maxRetry)))
			failures++
		}
	}
}
