package offline

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/readapi"
	"github.com/crdcache/crdcache/snapshot"
)

// Options say what to read.
type Options struct {
	// Paths are files, directories, and Stdin. At least one is required.
	Paths []string
	// In is read for Stdin.
	In io.Reader
	// Report is told about each problem when it is found, from one goroutine at a time. Default: nobody is;
	// see Source.Problems.
	Report func(*manifest.Problem)
	// TypesChanged is told by Follow, from its goroutine, when types come that no CustomResourceDefinition
	// defines: a discovery.Tracker only sees these when its Refresh is called. Default: nobody is.
	TypesChanged func()
}

// Source holds what was read, and serves it.
type Source struct {
	options Options
	storage *readapi.Storage
	handler http.Handler
	// recorded is the snapshot that is served in the place of storage.
	recorded *snapshot.File

	// turn is held by who reads files.
	turn struct {
		sync.Mutex
		loader *loader
		files  []*manifest.File
		dirs   []string
	}
	mu struct {
		sync.Mutex
		problems []*manifest.Problem
		// listing is why the files could not be found, the last time.
		listing *manifest.Problem
	}
}

// Open reads everything once. Where a path does not exist or cannot be opened, or when ctx ends, that is the
// error. Documents that cannot be read are Problems, which do not keep the others from being served.
func Open(ctx context.Context, options Options) (*Source, error) {
	if len(options.Paths) == 0 {
		return nil, errors.New("no files are named")
	}
	file, err := openRecorded(ctx, &options)
	if err != nil {
		return nil, err
	}
	if file != nil {
		s := &Source{options: options}
		s.serve(file)
		return s, nil
	}
	// The clock stands still, so that equal files have equal objects.
	now := func() time.Time { return time.Unix(0, 0) }
	s := &Source{options: options,
		storage: readapi.NewStorage(readapi.StorageOptions{Compress: true, OnlyApplied: true, Now: now})}
	s.handler = readapi.NewHandler(s.storage, readapi.HandlerOptions{WriteTimeout: -1})
	s.turn.Lock()
	defer s.turn.Unlock()
	s.turn.loader = newLoader(s.storage, s.note)
	found, err := manifest.List(ctx, options.Paths, manifest.ListOptions{})
	if err != nil {
		return nil, err
	}
	found.ReportEmpty(s.note)
	s.turn.files, s.turn.dirs = found.Files, found.Dirs
	l := s.turn.loader
	for _, f := range found.Files {
		if err := l.reader.Read(ctx, f, options.In, func(e manifest.Entry) { l.add(f, e) }); err != nil {
			return nil, err
		}
	}
	l.settle()
	// A definition may have come after a kind that is built in; nothing else changes what has been read.
	if err := s.again(ctx); err != nil {
		return nil, err
	}
	l.reader.Summarize()
	l.live = true
	l.retyped = false
	return s, nil
}

// note takes a problem.
func (s *Source) note(p *manifest.Problem) {
	s.mu.Lock()
	s.mu.problems = append(s.mu.problems, p)
	s.mu.Unlock()
	if s.options.Report != nil {
		s.options.Report(p)
	}
}

// forget drops the problems of files that are read anew, or are gone: otherwise they would grow with every
// change, and what has been mended would be wrong for ever.
func (s *Source) forget(names map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.problems = slices.DeleteFunc(s.mu.problems, func(p *manifest.Problem) bool { return names[p.File] })
}

// Problems returns what is wrong with the files as they were last read, in the order in which it was found.
func (s *Source) Problems() []*manifest.Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	problems := slices.Clone(s.mu.problems)
	if s.mu.listing != nil {
		problems = append(problems, s.mu.listing)
	}
	return problems
}

// unlisted takes why the files could not be found; nil: they were.
func (s *Source) unlisted(p *manifest.Problem) {
	s.mu.Lock()
	s.mu.listing = p
	s.mu.Unlock()
	if p != nil && s.options.Report != nil {
		s.options.Report(p)
	}
}

// Err joins the problems that are no warnings, or is nil when there are none.
func (s *Source) Err() error {
	var failed []error
	for _, p := range s.Problems() {
		if !p.Warning {
			failed = append(failed, p)
		}
	}
	return errors.Join(failed...)
}

// Use notes that somebody reads types, and reports those of them that were made up.
func (s *Source) Use(types ...schema.GroupResource) {
	s.turn.Lock()
	defer s.turn.Unlock()
	l := s.turn.loader
	if l == nil {
		return // a snapshot has all its types
	}
	for _, gr := range types {
		l.used[gr] = true
	}
	l.reportGuesses()
	l.reader.Summarize()
}

// Config returns the config for clients of the source. It needs no network.
func (s *Source) Config() *rest.Config { return readapi.Config(s.handler) }

// Handler returns what the clients talk to, to be served over a network.
func (s *Source) Handler() http.Handler { return s.handler }

// Snapshot is the snapshot that is served; nil where it is anything else.
func (s *Source) Snapshot() *snapshot.File { return s.recorded }

// Storage returns what holds types and objects; nil for a snapshot.
func (s *Source) Storage() *readapi.Storage { return s.storage }

// dirs are the directories that have the files.
func (s *Source) dirs() []string {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.turn.dirs
}

// Files returns the paths that were read, in order.
func (s *Source) Files() []string {
	s.turn.Lock()
	defer s.turn.Unlock()
	paths := make([]string, 0, len(s.turn.files))
	for _, f := range s.turn.files {
		paths = append(paths, f.Path)
	}
	return paths
}
