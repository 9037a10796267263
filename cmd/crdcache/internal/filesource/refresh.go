package filesource

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/internal/manifest"
)

// Refresh reads new and changed files, and updates the objects. It does not read standard input again. Files
// that cannot be read or are empty keep their objects and are reported as Problems. It returns only the error
// of ctx.
func (s *Source) Refresh(ctx context.Context) error {
	s.reading.Lock()
	err := s.refresh(ctx)
	s.reading.loader.reader.Summarize()
	retyped := s.reading.loader.typesChanged
	s.reading.loader.typesChanged = false
	s.reading.Unlock()
	if retyped && s.options.TypesChanged != nil {
		s.options.TypesChanged()
	}
	return err
}

func (s *Source) refresh(ctx context.Context) error {
	found, err := manifest.List(ctx, s.options.Paths, manifest.ListOptions{AllowMissing: true})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		// Without a complete listing it is unknown which files were deleted.
		s.setListing(&manifest.Problem{File: strings.Join(s.options.Paths, ", "), Err: err})
		return nil
	}
	s.setListing(nil)
	before := map[string]*manifest.File{}
	for _, f := range s.reading.files {
		before[f.Path] = f
	}
	var changed []*manifest.File
	for i, f := range found.Files {
		old := before[f.Path]
		delete(before, f.Path)
		if old == nil {
			changed = append(changed, f)
			continue
		}
		if old.Stamp != f.Stamp {
			old.Stamp = f.Stamp
			changed = append(changed, old)
		}
		found.Files[i] = old
	}
	s.reading.files, s.reading.dirs = found.Files, found.Dirs
	gone, changedFiles := map[*manifest.File]bool{}, map[string]bool{}
	for _, f := range before {
		gone[f], changedFiles[f.Name()] = true, true
	}
	for _, f := range changed {
		changedFiles[f.Name()] = true
	}
	s.dropProblems(changedFiles)
	if err := s.apply(ctx, changed, gone); err != nil {
		return err
	}
	return s.rereadMarkedFiles(ctx)
}

// rereadMarkedFiles reads the files in loader.filesToReread again. Rereading files can change more types,
// which marks more files. It repeats until no file is marked, at most maxRereadRounds times.
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
		if err := s.apply(ctx, files, nil); err != nil {
			return err
		}
	}
	return nil
}

// maxRereadRounds limits how often rereadMarkedFiles repeats.
const maxRereadRounds = 8

var errEmpty = errors.New(
	"the file is empty: its previous objects are kept until it has content or is deleted")

// apply reads files into the storage, definitions first, and deletes the objects that the files no longer
// have.
func (s *Source) apply(ctx context.Context, files []*manifest.File, gone map[*manifest.File]bool) error {
	l := s.reading.loader
	type found struct {
		file *manifest.File
		manifest.Entry
	}
	var first, rest []found
	for _, f := range files {
		if f.Stamp.Size == 0 {
			// Redirection empties a file before it is written.
			l.reader.Problem(f, manifest.Position{}, true, errEmpty)
			continue
		}
		err := l.reader.Read(ctx, f, nil, func(e manifest.Entry) {
			if isDefinition(e) {
				first = append(first, found{f, cloneEntry(e)})
			} else {
				rest = append(rest, found{f, cloneEntry(e)})
			}
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			l.reader.Problem(f, manifest.Position{}, false, err)
		}
	}
	for _, e := range slices.Concat(first, rest) {
		l.add(e.file, e.Entry)
	}
	l.inferTypes()
	var dropped []object
	for o, c := range l.origins {
		if gone[c.file] || c.readCount != c.file.ReadCount && !c.file.HadErrors {
			dropped = append(dropped, o)
		}
	}
	// Objects are deleted before their definitions, so that each deletion is sent once.
	slices.SortFunc(dropped, func(a, b object) int {
		switch {
		case (a.GroupKind == definitionKind) == (b.GroupKind == definitionKind):
			return 0
		case a.GroupKind == definitionKind:
			return 1
		}
		return -1
	})
	for _, o := range dropped {
		l.remove(o)
	}
	return nil
}
