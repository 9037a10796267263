package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/filesource"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/serving/readapi/live"
)

// keepUnused is how long Shared caches a type that no verb reads.
const keepUnused = time.Hour

// Shared has the files and the caches of the verbs of one process. It is safe for concurrent use.
type Shared struct {
	ctx context.Context
	// namespace is the only cached namespace. Empty means all.
	namespace string
	// budget is the number of bytes of a cluster's caches from which on no other type is cached.
	budget int64

	mu        sync.Mutex
	factories map[string]*dynamicinformer.Factory // by the config, and the cluster and the user, or the files
	sources   map[string]*filesource.Source       // by their paths
}

// NewShared returns a Shared whose caches and files are updated until ctx ends. If namespace is set, all
// verbs have this namespace. If the caches of a cluster have budget bytes, other types are not cached.
func NewShared(ctx context.Context, namespace string, budget int64) *Shared {
	return &Shared{ctx: ctx, namespace: namespace, budget: budget,
		factories: map[string]*dynamicinformer.Factory{}, sources: map[string]*filesource.Source{}}
}

type sharedKey struct{}

// Context returns a context for verbs that use s, and report about their reads in answer.
func (s *Shared) Context(ctx context.Context, answer *Report) context.Context {
	return context.WithValue(context.WithValue(ctx, sharedKey{}, s), reportKey{}, answer)
}

func sharedOf(ctx context.Context) *Shared {
	s, _ := ctx.Value(sharedKey{}).(*Shared)
	return s
}

// open works like filesource.Open. Files that are already open are shared, and followed.
func (s *Shared) open(ctx context.Context, options filesource.Options) (*filesource.Source, error) {
	if s == nil {
		return filesource.Open(ctx, options)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	paths := strings.Join(options.Paths, "\n")
	if source := s.sources[paths]; source != nil {
		return source, nil
	}
	options.Types, options.KeepIdentity = nil, false
	source, err := filesource.Open(ctx, options)
	if err == nil {
		s.sources[paths] = source
		go source.Follow(s.ctx) // ended by s.ctx
	}
	return source, err
}

// factory returns the factory of the cluster and the user of a target, or of its files.
func (s *Shared) factory(ctx context.Context, t *Target) (*dynamicinformer.Factory, error) {
	identity := strings.Join(t.paths, "\n")
	var err error
	if !t.ReadsFiles() {
		if identity, _, err = localserver.Identity(ctx, t.Rest); err != nil {
			return nil, err
		}
	}
	identity += "\n" + t.configDigest
	s.mu.Lock()
	defer s.mu.Unlock()
	if factory := s.factories[identity]; factory != nil {
		return factory, nil
	}
	config := rest.CopyConfig(t.Rest)
	config.WrapTransport = nil // it belongs to a command that does not watch
	config.WarningHandler = rest.NoWarnings{}
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: config, KeepRepeated: true,
		Linger: keepUnused})
	if err == nil {
		s.factories[identity], err = factory, factory.Start(s.ctx)
	}
	return factory, err
}

// share replaces caches by shared ones that are synced and follow the changes, after their first sync. The
// other types are read again.
func (c *Caches) share(ctx context.Context, t *Target) error {
	factory, err := sharedOf(ctx).factory(ctx, t)
	if err != nil {
		return err
	}
	var waiting sync.WaitGroup
	var doneCount atomic.Int64
	defer t.Progress(func() (int, int) { return int(doneCount.Load()), len(c.All) })()
	errs, isFull := make([]error, len(c.All)), factory.MemoryStats().Used >= sharedOf(ctx).budget
	for i := range c.All {
		cached := &c.All[i]
		options, err := c.sharedOptionsOf(cached.Resource)
		if err != nil {
			return err
		}
		isCached := func(x *dynamicinformer.Informer) bool {
			return x.GVR() == cached.Resource.GVR && (x.KeptFields() == "") == (len(options.Keep.Paths) == 0)
		}
		if isFull && !slices.ContainsFunc(factory.Informers(), isCached) {
			continue
		}
		waiting.Go(func() { // ended by ctx
			defer doneCount.Add(1)
			var handle *dynamicinformer.Handle
			if handle, errs[i] = factory.Acquire(cached.Resource.GVR, options); errs[i] != nil {
				return
			}
			if live.IsWatching(t.waitUntilSettled(ctx, handle.Informer())) {
				cached.handle, handle = handle, cached.handle
				cached.Informer, cached.Shared = cached.handle.Informer(), true
			}
			handle.Release()
		})
	}
	waiting.Wait()
	return errors.Join(errs...)
}

type reportKey struct{}

// Report is returned to the caller of Shared.Context besides a verb's output. It is safe for concurrent use.
// A nil *Report ignores everything.
type Report struct {
	// Skip is the number of objects before the page, and Limit that of the objects on it.
	Skip, Limit int

	mu sync.Mutex
	// Objects is the number of objects of the result.
	Objects int
	// Types are the types that the verb has read.
	Types []schema.GroupResource
	// Contact is the earliest last contact of the caches with their server. It is zero without caches.
	Contact time.Time
	// Versions are the resource versions of the caches.
	Versions []string

	progress atomic.Pointer[func() string] // nil before the first read
}

// ReportOf returns the report of the verb that runs with a context, or nil.
func ReportOf(ctx context.Context) *Report {
	r, _ := ctx.Value(reportKey{}).(*Report)
	return r
}

// Progress returns how much the verb has read, or "" if it has not begun to read.
func (r *Report) Progress() string {
	if line := r.progress.Load(); line != nil {
		return (*line)()
	}
	return ""
}

// page counts the next n objects of the result, and returns the range of them that is on the page.
func (r *Report) page(n int) (from, to int) {
	if r == nil {
		return 0, n
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	from, to = max(r.Skip-r.Objects, 0), max(r.Skip+r.Limit-r.Objects, 0)
	r.Objects += n
	return min(from, n), min(to, n)
}

// Read records a type that the verb has read, and the version and the last contact of its cache, if any.
func (r *Report) Read(gr schema.GroupResource, version string, contact time.Time) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Types = append(r.Types, gr)
	if !contact.IsZero() && (r.Contact.IsZero() || contact.Before(r.Contact)) {
		r.Contact = contact
	}
	if version != "" && !slices.Contains(r.Versions, version) {
		r.Versions = append(r.Versions, version)
	}
}
