package offline

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Refresh reads the files that have changed, come or gone since they were last read, and changes the objects
// accordingly. Standard input is not read again. A file that cannot be read, or is empty, keeps its
// objects and is a Problem. The error is that of ctx.
func (s *Source) Refresh(ctx context.Context) error {
	s.turn.Lock()
	err := s.refresh(ctx)
	s.turn.loader.summarize()
	retyped := s.turn.loader.retyped
	s.turn.loader.retyped = false
	s.turn.Unlock()
	if retyped && s.options.TypesChanged != nil {
		s.options.TypesChanged()
	}
	return err
}

func (s *Source) refresh(ctx context.Context) error {
	found, err := listFiles(ctx, s.options.Paths, true, false)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		// Nobody knows what is gone: keep everything.
		s.note(&Problem{File: strings.Join(s.options.Paths, ", "), Err: err})
		return nil
	}
	before := map[string]*file{}
	for _, f := range s.turn.files {
		before[f.path] = f
	}
	var changed []*file
	for i, f := range found.files {
		old := before[f.path]
		delete(before, f.path)
		if old == nil {
			changed = append(changed, f)
			continue
		}
		if old.stamp != f.stamp {
			old.stamp = f.stamp
			changed = append(changed, old)
		}
		found.files[i] = old
	}
	s.turn.files, s.turn.dirs = found.files, found.dirs
	gone := map[*file]bool{}
	for _, f := range before {
		gone[f] = true
	}
	if err := s.take(ctx, changed, gone); err != nil {
		return err
	}
	return s.again(ctx)
}

// again reads files whose objects need another look until none does. Definitions decide about
// kinds, and each is taken at most once in a turn, so that this ends.
func (s *Source) again(ctx context.Context) error {
	l := s.turn.loader
	for round := 0; len(l.reread) > 0 && round < maxRounds; round++ {
		wanted := l.reread
		l.reread = map[string]bool{}
		var files []*file
		for _, f := range s.turn.files {
			if wanted[f.path] && f.path != Stdin {
				files = append(files, f)
			}
		}
		if err := s.take(ctx, files, nil); err != nil {
			return err
		}
	}
	return nil
}

// maxRounds bounds how often types may change because of what they change.
const maxRounds = 8

var errEmpty = errors.New("it is empty: what it had is kept until there is something in it, or until it is gone")

// take reads files into the storage, definitions first, and then drops what is no longer there.
func (s *Source) take(ctx context.Context, files []*file, gone map[*file]bool) error {
	l := s.turn.loader
	type found struct {
		file *file
		entry
	}
	var first, rest []found
	for _, f := range files {
		if f.stamp.size == 0 {
			// Whoever writes a file by redirection empties it first.
			l.problem(f, place{}, true, errEmpty)
			continue
		}
		err := l.read(ctx, f, nil, func(e entry) {
			if isDefinition(e.data) {
				first = append(first, found{f, e})
			} else {
				rest = append(rest, found{f, e})
			}
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			l.problem(f, place{}, false, err)
		}
	}
	for _, e := range slices.Concat(first, rest) {
		l.add(e.file, e.entry)
	}
	l.settle()
	var dropped []object
	for o, c := range l.claims {
		if gone[c.file] || c.read != c.file.read && !c.file.broken {
			dropped = append(dropped, o)
		}
	}
	// Objects before the definitions of their types, so that each deletion is told once.
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
		l.drop(o)
	}
	return nil
}
