package readapi

import (
	"cmp"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Defaults of HandlerOptions.
const (
	DefaultBookmarkInterval = time.Minute
	DefaultWatchTimeout     = 30 * time.Minute
	DefaultWriteTimeout     = time.Minute
)

// HandlerOptions adjusts a handler. The zero value is usable.
type HandlerOptions struct {
	// Ending is closed when all watches are to end. Each ends with a bookmark, if its client allows
	// bookmarks, so that the client goes on from there at another server. Default: watches end by their own
	// time alone.
	Ending <-chan struct{}
	// Turns limits the requests that evaluate objects at the same time, or is nil. Default: no limit.
	Turns Turns
	// Version is what /version says. Default: the Kubernetes version whose API this is.
	Version *version.Info
	// BookmarkInterval is how often a watch that allows bookmarks gets one. Default DefaultBookmarkInterval.
	BookmarkInterval time.Duration
	// WatchTimeout ends a watch that names no timeoutSeconds, after this time to twice as much. Default
	// DefaultWatchTimeout.
	WatchTimeout time.Duration
	// WriteTimeout is how long a client may take to read what is written at once, some 64 KB. It is cut off
	// then, so that one that stalls keeps no list in memory for ever. It counts where the server can do that,
	// as net/http's and NewTransport do. Default DefaultWriteTimeout; negative: no limit, but for what
	// timeoutSeconds says of a watch.
	WriteTimeout time.Duration
	// Writes lets clients create, update, patch and delete the objects of a Storage, one by one or as
	// collections, by the rules of a kube-apiserver: conflicts, preconditions, the status subresource,
	// finalizers, generateName, generations, dryRun; of custom resources unknown fields are dropped and
	// defaults filled in. What it does not do are validation against schemas, admission, defaults of built-in
	// types, server-side apply and garbage collection. Default: nothing can be written.
	Writes bool
	// StrategicMerge serves strategic merge patches of types that no CustomResourceDefinition defines.
	// Default: they are refused.
	StrategicMerge StrategicMerge
	// Decodable, if set, says why an object that a client writes is none of its Go type. It is asked about
	// types that no CustomResourceDefinition defines.
	Decodable func(gvk schema.GroupVersionKind, object []byte) error
}

// handler serves a backend.
type handler struct {
	backend Backend
	options HandlerOptions
	events  eventCache

	documents struct {
		sync.Mutex
		generation uint64 // of the types that built is of
		built      map[string]document
	}
}

// NewHandler returns a handler that serves what is in the storage, then and later. It is safe for concurrent
// use. A watch ends with the context of its request, so that a server that has watches must cancel these to
// shut down.
func NewHandler(s *Storage, options HandlerOptions) http.Handler {
	return NewBackendHandler(served{s}, options)
}

// NewBackendHandler is NewHandler for another backend.
func NewBackendHandler(b Backend, options HandlerOptions) http.Handler {
	if options.Version == nil {
		options.Version = &version.Info{
			Major: "1", Minor: "37", GitVersion: "v1.37.0", GitTreeState: "clean", Compiler: "gc",
		}
	}
	options.BookmarkInterval = cmp.Or(max(options.BookmarkInterval, 0), DefaultBookmarkInterval)
	options.WatchTimeout = cmp.Or(max(options.WatchTimeout, 0), DefaultWatchTimeout)
	options.WriteTimeout = cmp.Or(options.WriteTimeout, DefaultWriteTimeout)
	return &handler{backend: b, options: options}
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-cache, private")
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch path := strings.TrimSuffix(r.URL.Path, "/"); {
	case slices.Contains([]string{"/healthz", "/readyz", "/livez"}, r.URL.Path):
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = io.WriteString(w, "ok") // the client has gone: nobody is left to tell
	case path == "/version" && reads:
		writeJSON(w, r, http.StatusOK, h.options.Version)
	case path == "/version":
		writeError(w, r, errMethodNotAllowed())
	case h.serveDocument(w, r):
	default:
		h.serveResource(w, r)
	}
}

// writable returns what can be written to.
func (h *handler) writable() (*Storage, bool) {
	s, ok := h.backend.(served)
	return s.Storage, ok && h.options.Writes
}

// resource is what a request is about, as it is served at that moment.
type resource struct {
	target
	collection Collection
	typ        Type
	version    *Version
}

func (h *handler) serveResource(w http.ResponseWriter, r *http.Request) {
	t, err := h.resolve(r.URL.Path)
	if err != nil {
		writeError(w, r, err)
		return
	}
	switch {
	case t == nil && strings.HasPrefix(r.URL.Path, "/api/"):
		writeError(w, r, errNoSuchResource())
		return
	case t == nil:
		notFound(w)
		return
	}
	t.typ.warn(w.Header(), *t.version)
	storage, writable := h.writable()
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case !reads && writable && t.name == "" && t.typ.Namespaced && !t.namespaced && t.typ.Custom:
		notFound(w) // as for a path that nobody serves
	case !reads && writable && t.name == "" && t.typ.Namespaced && !t.namespaced:
		writeError(w, r, errMethodNotAllowed())
	case !reads && writable:
		h.mutate(w, r, storage, t)
	case !reads:
		writeError(w, r, apierrors.NewMethodNotSupported(t.typ.GroupResource(), verbOf(r.Method, t.name)))
	case t.name != "":
		h.get(w, r, t)
	default:
		h.serveCollection(w, r, t)
	}
}

// serveCollection serves a list or a watch: as a kube-apiserver sees it, "watch=" asks for one.
func (h *handler) serveCollection(w http.ResponseWriter, r *http.Request, t *resource) {
	e, err := newEncoder(r, t)
	if err != nil {
		writeError(w, r, err)
		return
	}
	switch options, err := h.listOptions(r); {
	case err != nil:
		writeError(w, r, err)
	case options.Watch:
		h.watch(w, r, e, options)
	default:
		h.list(w, r, e, options)
	}
}

// listOptions parses in a turn, because a long selector takes milliseconds.
func (h *handler) listOptions(r *http.Request) (*internalversion.ListOptions, error) {
	turn := NewTurn(h.options.Turns)
	if err := turn.Begin(r.Context()); err != nil {
		return nil, err
	}
	defer turn.End()
	return parseListOptions(r.URL.Query())
}

// verbOf names a method of writing as kube-apiserver does; what it does not know is nothing.
func verbOf(method, name string) string {
	switch {
	case method == http.MethodPost:
		return "create"
	case method == http.MethodPut:
		return "update"
	case method == http.MethodPatch:
		return "patch"
	case method == http.MethodDelete && name == "":
		return "deletecollection"
	case method == http.MethodDelete:
		return "delete"
	}
	return ""
}

// resolve finds what a path names. Without an error, nil says that nothing is there at all.
func (h *handler) resolve(path string) (*resource, error) {
	t, ok := parsePath(path)
	if !ok {
		return nil, nil
	}
	if c := h.backend.Collection(schema.GroupResource{Group: t.gv.Group, Resource: t.resource}); c != nil {
		found := &resource{target: t, collection: c, typ: c.Type()}
		found.version = found.typ.version(t.gv.Version)
		switch {
		case found.version == nil || t.misplaced(found.typ):
		case h.options.Writes && slices.Contains(found.version.Unserved, t.subresource):
			return nil, errUnserved(found.typ.GroupResource(), t.subresource)
		case t.subresource != "" && !slices.Contains(found.version.Subresources, t.subresource):
			return nil, apierrors.NewNotFound(found.typ.GroupResource(), t.name)
		default:
			return found, found.refused()
		}
	}
	if h.builtIn(t.gv.Group) {
		return nil, errNoSuchResource()
	}
	return nil, nil
}

// misplaced reports whether the path has a namespace too many or too few.
func (t target) misplaced(typ Type) bool {
	if typ.Namespaced {
		return t.name != "" && !t.namespaced
	}
	return t.namespaced
}

// builtIn reports whether a group has a type that no CustomResourceDefinition defines.
func (h *handler) builtIn(group string) bool {
	types, _ := h.backend.ServedTypes()
	return group == "" || slices.ContainsFunc(types,
		func(t Type) bool { return t.Group == group && !t.Custom })
}

// watchTimeout is how long a watch lasts.
func (h *handler) watchTimeout(seconds *int64) time.Duration {
	if seconds != nil && *seconds > 0 {
		return time.Duration(*seconds) * time.Second
	}
	return h.options.WatchTimeout + rand.N(h.options.WatchTimeout)
}
