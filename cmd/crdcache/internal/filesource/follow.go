package filesource

import (
	"context"
	"fmt"
	"slices"
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
	read, last := filesState{errText: "not read"}, filesState{}
	for unsettled := 0; ; {
		start := time.Now()
		state := s.state(ctx)
		if !state.same(read) {
			if unsettled++; state.same(last) || unsettled > maxUnsettled {
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

// filesState is the result of a search for files.
type filesState struct {
	files   []*manifest.File
	errText string
}

func (s *Source) state(ctx context.Context) filesState {
	listing, err := manifest.List(ctx, s.options.Paths, manifest.ListOptions{AllowMissing: true})
	return filesState{listing.Files, fmt.Sprint(err)}
}

func (s filesState) same(t filesState) bool {
	return s.errText == t.errText && slices.EqualFunc(s.files, t.files, func(a, b *manifest.File) bool {
		return a.Path == b.Path && a.Stamp.Same(b.Stamp)
	})
}
