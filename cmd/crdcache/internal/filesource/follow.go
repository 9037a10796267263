package filesource

import (
	"context"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/crdcache/crdcache/internal/manifest"
)

const (
	// minPollPause is the shortest pause between two searches for changes. A pause is at least pollFactor
	// times as long as the search before it.
	minPollPause = 200 * time.Millisecond
	pollFactor   = 50
	// maxUnsettled is the number of searches for which files can change until they are read nevertheless.
	maxUnsettled = 5
)

// Follow updates the objects and types when files change, until ctx ends. It polls: a file system that is
// mounted from another machine reports no changes. Editors change files in several steps, so files are read
// when two searches find the same state. A snapshot does not change.
func (s *Source) Follow(ctx context.Context) {
	if s.snapshot != nil {
		<-ctx.Done()
		return
	}
	seed := maphash.MakeSeed()
	var read, last uint64 // states of the files
	for unsettled := 0; ; {
		start := time.Now()
		state := s.state(ctx, seed)
		if state != read {
			if unsettled++; state == last || unsettled > maxUnsettled {
				if s.Refresh(ctx) != nil {
					return
				}
				read, unsettled = state, 0
			}
		}
		last = state
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(minPollPause, pollFactor*time.Since(start))):
		}
	}
}

// state returns a hash of the names, sizes and times of all files.
func (s *Source) state(ctx context.Context, seed maphash.Seed) uint64 {
	listing, err := manifest.List(ctx, s.options.Paths, manifest.ListOptions{AllowMissing: true})
	var hash maphash.Hash
	hash.SetSeed(seed)
	fmt.Fprint(&hash, err)
	for _, f := range listing.Files {
		fmt.Fprint(&hash, f.Path, "\x00", f.Stamp.Size, f.Stamp.Changed.UnixNano())
	}
	return hash.Sum64()
}
