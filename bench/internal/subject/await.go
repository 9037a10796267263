package subject

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"
)

// syncPoll is how often a cache is asked whether it is synced: often enough to be small against the time of a
// sync, and seldom enough to cost nothing. cache.WaitForCacheSync asks every 100 ms.
const syncPoll = 2 * time.Millisecond

// awaitSynced returns when all are synced.
func awaitSynced(ctx context.Context, synced ...cache.InformerSynced) error {
	ticker := time.NewTicker(syncPoll)
	defer ticker.Stop()
	for _, done := range synced {
		for !done() {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return fmt.Errorf("%w: %w", errNotSynced, context.Cause(ctx))
			}
		}
	}
	return nil
}
