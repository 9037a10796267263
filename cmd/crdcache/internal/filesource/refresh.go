package filesource

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/crdcache/crdcache/internal/manifest"
)

// Refresh reads new and changed files, except standard input, and updates the objects. Files that cannot be
// read, or are empty as when redirection begins, keep their objects and are reported as Problems. So do all
// files if a named path is gone. A snapshot is not read again, but reported as replaced.
// The only possible error is that of ctx.
func (s *Source) Refresh(ctx context.Context) error {
	s.reading.Lock()
	if s.snapshot != nil {
		s.setListing(&manifest.Problem{File: s.PathNames(),
			Err: manifest.PartialError("the snapshot was replaced or removed: start again to read it")})
		s.setReasons(s.reading.reasons)
		s.reading.Unlock()
		return nil
	}
	err, l := s.refresh(ctx), s.reading.loader
	l.summarize()
	typesChanged := l.typesChanged
	l.typesChanged = false
	s.setReasons(l.collectedReasons())
	s.reading.Unlock()
	if typesChanged && s.options.TypesChanged != nil {
		s.options.TypesChanged()
	}
	return err
}

func (s *Source) refresh(ctx context.Context) error {
	listing, err := manifest.List(ctx, s.options.Paths, manifest.ListOptions{})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		// Without a complete listing it is unknown which files were deleted.
		s.setListing(&manifest.Problem{File: s.PathNames(), Err: err})
		s.endOldWatches()
		return nil
	}
	s.setListing(nil)
	s.reportListing(listing)
	previousFiles := map[string]*manifest.File{}
	for _, f := range s.reading.files {
		previousFiles[f.Path] = f
	}
	var changed []*manifest.File
	for i, f := range listing.Files {
		previous := previousFiles[f.Path]
		delete(previousFiles, f.Path)
		if previous == nil {
			changed = append(changed, f)
			continue
		}
		if !previous.Stamp.Same(f.Stamp) {
			previous.Stamp = f.Stamp
			changed = append(changed, previous)
		}
		listing.Files[i] = previous
	}
	s.reading.files = listing.Files
	deletedFiles, changedNames := map[*manifest.File]bool{}, map[string]bool{}
	for _, f := range previousFiles {
		deletedFiles[f], changedNames[f.Name()] = true, true
	}
	for _, f := range changed {
		changedNames[f.Name()] = true
	}
	s.dropProblems(changedNames)
	if err := s.loadFiles(ctx, changed, deletedFiles); err != nil {
		return err
	}
	return s.rereadMarkedFiles(ctx)
}

// rereadMarkedFiles reads the files in loader.filesToReread again. This can change more types and mark more
// files. Therefore it repeats until no file is marked, at most maxRereadRounds times.
func (s *Source) rereadMarkedFiles(ctx context.Context) error {
	l := s.reading.loader
	for round := 0; len(l.filesToReread) > 0 && round < maxRereadRounds; round++ {
		marked := l.filesToReread
		l.filesToReread = map[string]bool{}
		var files []*manifest.File
		rereadNames := map[string]bool{}
		for _, f := range s.reading.files {
			if marked[f.Path] && f.Path != manifest.Stdin {
				files = append(files, f)
				rereadNames[f.Name()] = true
			}
		}
		if l.isServed {
			s.dropProblems(rereadNames)
		}
		if err := s.loadFiles(ctx, files, nil); err != nil {
			return err
		}
	}
	return nil
}

const maxRereadRounds = 8

// loadFiles reads files into the storage, definitions first. It deletes the objects that the files no longer
// have.
func (s *Source) loadFiles(ctx context.Context, files []*manifest.File,
	deletedFiles map[*manifest.File]bool) error {
	l := s.reading.loader
	l.deletedFiles = deletedFiles
	type fileEntry struct {
		file *manifest.File
		manifest.Entry
	}
	var definitions, otherEntries []fileEntry
	for _, f := range files {
		err := l.reader.Read(ctx, f, nil, func(e manifest.Entry) {
			if e.Kind == crdGroupKind.Kind {
				definitions = append(definitions, fileEntry{f, cloneEntry(e)})
			} else {
				otherEntries = append(otherEntries, fileEntry{f, cloneEntry(e)})
			}
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			l.reader.Problem(f, manifest.Position{}, false, err)
		}
	}
	for _, e := range slices.Concat(definitions, otherEntries) {
		l.add(e.file, e.Entry)
	}
	l.inferTypes()
	l.dropReasons()
	l.clock.settle(l.isGone)
	s.endOldWatches() // before they send deletions of objects that are no longer collected
	var removedKeys []objectKey
	for key, from := range l.origins {
		if l.isGone(from.file, from.readCount) {
			removedKeys = append(removedKeys, key)
		}
	}
	// Objects are deleted before their definitions, so that each deletion is sent once.
	for _, definitions := range []bool{false, true} {
		for _, key := range removedKeys {
			if (key.GroupKind == crdGroupKind) == definitions {
				l.removeObject(key)
			}
		}
	}
	l.removeTypes()
	return nil
}

// endOldWatches ends the watches of types with other reasons than before. New requests announce them.
func (s *Source) endOldWatches() {
	problems := ""
	if err := s.Err(); err != nil {
		problems = err.Error()
	}
	for _, k := range s.reading.loader.kinds {
		gr := k.typ.GroupResource()
		reasons := s.reading.loader.reasonOf(gr, false) + problems
		if s.reading.announced[gr] != reasons {
			s.reading.announced[gr] = reasons
			s.storage.EndWatches(gr)
		}
	}
}

const (
	minPollPause, maxPollPause = 200 * time.Millisecond, 5 * time.Second // between two searches for changes
	pollFactor                 = 50
	// maxUnsettled is the number of searches for which files can change until they are read nevertheless.
	maxUnsettled = 5
)

// Follow updates the objects and types when files change, until ctx ends. It polls: a file system that is
// mounted from another machine reports no changes. Editors change files in several steps, so files are read
// when two searches find the same state. A snapshot that was replaced is not read again, but reported.
func (s *Source) Follow(ctx context.Context) {
	read, last, lastSearch := s.state(ctx), filesState{}, time.Duration(0)
	if s.snapshot == nil {
		read.errText = "not read"
	}
	for unsettled := 0; ; {
		start := time.Now()
		state := s.state(ctx)
		search := time.Since(start)
		pause := pauseAfter(search, lastSearch)
		if !state.same(read) {
			if unsettled++; state.same(last) || unsettled > maxUnsettled {
				if s.Refresh(ctx) != nil {
					return
				}
				read, unsettled = state, 0
			}
		}
		last, lastSearch = state, search
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// reportListing reports the files that are not read, if they have changed.
func (s *Source) reportListing(listing manifest.Listing) {
	last := s.reading.listing
	if slices.Equal(last.Empty, listing.Empty) && maps.Equal(last.Skipped, listing.Skipped) {
		return
	}
	names := map[string]bool{}
	for _, name := range slices.AppendSeq(last.Empty, maps.Keys(last.Skipped)) {
		names[name] = true
	}
	s.dropProblems(names)
	clear(s.reading.reportedTypes) // their warnings can have the name of a folder
	s.reading.listing = listing
	listing.Report(s.addProblem)
}

// pauseAfter returns a pause of pollFactor times the shorter one of two searches, because a busy machine
// delays some. It is at least as long as the search, and otherwise at most maxPollPause.
func pauseAfter(search, lastSearch time.Duration) time.Duration {
	return max(minPollPause, search, min(maxPollPause, pollFactor*min(search, lastSearch)))
}

// filesState is the result of a search for files.
type filesState struct {
	manifest.Listing
	errText string
}

func (s *Source) state(ctx context.Context) filesState {
	listing, err := manifest.List(ctx, s.options.Paths, manifest.ListOptions{})
	return filesState{listing, fmt.Sprint(err)}
}

func (s filesState) same(t filesState) bool {
	return s.errText == t.errText && maps.Equal(s.Skipped, t.Skipped) &&
		slices.EqualFunc(s.Files, t.Files, func(a, b *manifest.File) bool {
			return a.Path == b.Path && a.Stamp.Same(b.Stamp)
		})
}
