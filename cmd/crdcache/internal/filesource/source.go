package filesource

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/internal/snapshot"
	"github.com/crdcache/crdcache/serving/readapi"
)

// versionedBackend is an *apiserver.Storage or a *snapshotBackend.
type versionedBackend interface {
	readapi.Backend
	Versions(gr schema.GroupResource, named ...string) (counts map[string]int, namedCount int)
}

type Options struct {
	// Paths are files, directories and Stdin. At least one is required.
	Paths []string
	// In is the content of Stdin.
	In io.Reader
	// Report is called for each problem, from one goroutine at a time. Optional; see also Source.Problems.
	Report func(*manifest.Problem)
	// Types are names of types. Objects of other types of Kubernetes are not kept, and requests for them
	// fail. Optional: all are kept.
	Types []string
	// KeepIdentity is set if only names, labels, UIDs and versions of objects are read. The other fields are
	// then kept only of objects that must be decoded.
	KeepIdentity bool
	// Received counts the bytes that are read. Optional.
	Received *atomic.Int64
	// TypesChanged is called by Follow, in its goroutine, for new types without a
	// CustomResourceDefinition. A discovery.Tracker finds them only after Refresh. Optional.
	TypesChanged func()
}

// Source is the content of files, served like a cluster.
type Source struct {
	options     Options
	storage     *apiserver.Storage
	handler     http.Handler
	snapshot    *snapshot.File // nil for other files
	backend     versionedBackend
	unconverted atomic.Bool // set by SelectVersions
	clock       clock
	// Time returns the time of the content, or zero if it is unknown.
	Time func() time.Time

	// reading is locked while files are read.
	reading struct {
		sync.Mutex
		loader  *loader
		files   []*manifest.File
		listing manifest.Listing // the latest with other files that are not read
		// reasons are those of types, and reasonsPath names them in answers. announced has them by type as
		// its watches began.
		reasons     []snapshot.Reason
		reasonsPath string
		announced   map[schema.GroupResource]string
		// reportedTypes are the types with a report of useWarning. announcedUses has the warnings of answers.
		reportedTypes map[schema.GroupResource]bool
		announcedUses map[schema.GroupVersionResource]error
	}
	mu struct {
		sync.Mutex
		problems []*manifest.Problem
		// listProblem is the error of the latest search for files.
		listProblem *manifest.Problem
		// names are the types that are read.
		names []discovery.Name
	}
}

// Open reads all files. It returns an error if a path does not exist or cannot be opened, or if ctx ends.
// Invalid documents are reported as Problems. All other documents are served.
func Open(ctx context.Context, options Options) (*Source, error) {
	if len(options.Paths) == 0 {
		return nil, errors.New("no files are named")
	}
	file, err := openOnlySnapshot(ctx, &options)
	if err != nil {
		return nil, err
	}
	s := &Source{options: options}
	s.reading.reportedTypes = map[schema.GroupResource]bool{}
	s.reading.announced = map[schema.GroupResource]string{}
	if file != nil {
		s.serveSnapshot(file)
		return s, nil
	}
	// With a constant clock, equal files give equal objects.
	now := func() time.Time { return time.Unix(0, 0) }
	s.storage = apiserver.NewStorage(apiserver.StorageOptions{
		Compress: true, OmitSystemTypes: true, Now: now, Select: s.selectObjects, Refuse: s.refuse,
	})
	s.backend = s.storage
	s.Time, s.handler = s.clock.time, s.newHandler(s.storage)
	s.reading.Lock()
	defer s.reading.Unlock()
	s.clock.byReading = map[reading]string{}
	s.reading.loader = newLoader(s.storage, &s.clock, s.addProblem)
	listing, err := manifest.List(ctx, options.Paths, manifest.ListOptions{})
	if err != nil {
		return nil, err
	}
	s.reportListing(listing)
	s.reading.files = listing.Files
	l := s.reading.loader
	l.reader.Received = options.Received
	l.names, l.keepsIdentity, l.paths = parseNames(options.Types), options.KeepIdentity, options.Paths
	for _, f := range listing.Files {
		if err := l.reader.Read(ctx, f, options.In, func(e manifest.Entry) { l.add(f, e) }); err != nil {
			return nil, err
		}
	}
	l.inferTypes()
	// A definition can follow objects of a built-in kind. Nothing else changes the objects.
	if err := s.rereadMarkedFiles(ctx); err != nil {
		return nil, err
	}
	l.summarize()
	l.clock.settle(l.isGone)
	l.isServed = true
	l.typesChanged = false
	s.setReasons(l.collectedReasons())
	s.endOldWatches()
	return s, nil
}

// Table returns the columns of a built-in type, and a function that returns the cells of an object with ages
// until a time. Package columns sets it when a program is initialized. By default there are no columns.
var Table = func(schema.GroupResource) (columns []metav1.TableColumnDefinition,
	cells func(object map[string]any, now time.Time) []any) {
	return nil, nil
}

// Schemas is readapi.HandlerOptions.Schemas. Package columns sets it, like Table.
var Schemas func(schema.GroupVersion) (kinds, others map[string]any)

// Table returns the columns of a built-in type, and a function that returns the cells of an object with ages
// until the time of the files.
func (s *Source) Table(gr schema.GroupResource) (columns []metav1.TableColumnDefinition,
	cells func(object map[string]any) []any) {
	columns, cellsUntil := Table(gr)
	return columns, func(o map[string]any) []any { return cellsUntil(o, s.Now()) }
}

// Now returns the time until which ages count: that of the files, or the current time if it is unknown.
func (s *Source) Now() time.Time { return cmp.Or(s.Time(), time.Now()) }

// newHandler returns a handler with the tables of Table and the schemas of Schemas.
func (s *Source) newHandler(b readapi.Backend) http.Handler {
	return readapi.NewHandler(b, readapi.HandlerOptions{WriteTimeout: -1, Table: s.Table, Schemas: Schemas,
		Now: s.Now})
}

func (s *Source) addProblem(p *manifest.Problem) {
	s.mu.Lock()
	s.mu.problems = append(s.mu.problems, p)
	s.mu.Unlock()
	if s.options.Report != nil {
		s.options.Report(p)
	}
}

func (s *Source) dropProblems(names map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.problems = slices.DeleteFunc(s.mu.problems, func(p *manifest.Problem) bool { return names[p.File] })
}

// Problems returns the current problems of the files in the order in which they were found.
func (s *Source) Problems() []*manifest.Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	problems := slices.Clone(s.mu.problems)
	if s.mu.listProblem != nil {
		problems = append(problems, s.mu.listProblem)
	}
	return problems
}

// setListing sets the error of the latest search for files. Nil means success.
func (s *Source) setListing(p *manifest.Problem) {
	s.mu.Lock()
	s.mu.listProblem = p
	s.mu.Unlock()
	if p != nil && s.options.Report != nil {
		s.options.Report(p)
	}
}

// Err joins the problems that are not warnings.
func (s *Source) Err() error {
	var errs []error
	for _, p := range s.Problems() {
		if !p.Warning {
			errs = append(errs, p)
		}
	}
	return errors.Join(errs...)
}

// RecordUse records that types are shown. It warns about inferred types, and if their objects are read, about
// objects in several versions, or in no file.
func (s *Source) RecordUse(readsObjects bool, types ...schema.GroupResource) {
	s.reading.Lock()
	defer s.reading.Unlock()
	l := s.reading.loader // nil for a snapshot, which has all its types
	for _, gr := range types {
		if readsObjects && !s.reading.reportedTypes[gr] {
			if err := s.useWarning(gr, s.isVersionNamed); err != nil {
				s.reading.reportedTypes[gr] = true
				s.addProblem(&manifest.Problem{File: s.PathNames(), Warning: true, Err: err})
			}
		}
		if l != nil {
			l.usedTypes[gr] = true
		}
	}
	if l != nil {
		l.reportInferredTypes()
		l.summarize()
	}
}

// Config returns a config for clients of the source. Its transport needs no network.
func (s *Source) Config() *rest.Config {
	config := readapi.Config(s.handler)
	config.Transport = transport{config.Transport, s}
	return config
}

// KeepsIdentity reports whether Options.KeepIdentity has an effect: snapshots and shared files have whole
// objects.
func (s *Source) KeepsIdentity() bool { return s.storage != nil && s.options.KeepIdentity }

// Snapshot returns the served snapshot, or nil.
func (s *Source) Snapshot() *snapshot.File { return s.snapshot }

// PathNames returns the paths for messages.
func (s *Source) PathNames() string {
	names := slices.Clone(s.options.Paths)
	if i := slices.Index(names, manifest.Stdin); i >= 0 {
		names[i] = (&manifest.File{Path: manifest.Stdin}).Name()
	}
	return strings.Join(names, ", ")
}
