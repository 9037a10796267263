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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Defaults of HandlerOptions.
const (
	DefaultBookmarkInterval = time.Minute
	DefaultWatchTimeout     = 30 * time.Minute
	DefaultWriteTimeout     = time.Minute
)

// HandlerOptions are the limits and hooks of a handler. The zero value is usable.
type HandlerOptions struct {
	// Table returns the columns of a type in tables, and a function that returns the cells of an object.
	// Default, or if it returns no columns: the columns of the type.
	Table func(schema.GroupResource) ([]metav1.TableColumnDefinition, func(object map[string]any) []any)
	// Now returns the time until which ages in tables count. Default: time.Now.
	Now func() time.Time
	// Schemas returns the OpenAPI schemas of built-in kinds, by kind, and the schemas to which they refer, by
	// name. Default: such objects have any fields.
	Schemas func(schema.GroupVersion) (kinds, others map[string]any)
	// StopWatches, when closed, ends all watches. Each ends with a bookmark if its client allows bookmarks,
	// so that the client can continue at another server. Default: watches end only by their timeout.
	StopWatches <-chan struct{}
	// Scheduler limits the number of requests that evaluate objects at the same time. Default: no limit.
	Scheduler Scheduler
	// Version is the content of /version. Default: the Kubernetes version of the served API.
	Version *version.Info
	// BookmarkInterval is the interval of bookmarks in watches that allow them. Default
	// DefaultBookmarkInterval.
	BookmarkInterval time.Duration
	// WatchTimeout is the minimum duration of a watch without timeoutSeconds. Its maximum is twice as long.
	// Default DefaultWatchTimeout.
	WatchTimeout time.Duration
	// WriteTimeout is the time in which a client must read each chunk of an answer, about 64 KB. Then the
	// answer is cut, so that a stalled client does not pin a list in memory. The http.ResponseWriter must
	// support write deadlines, like the writers of net/http and NewTransport. Default DefaultWriteTimeout.
	// Negative: no limit except the timeoutSeconds of a watch.
	WriteTimeout time.Duration
}

type handler struct {
	backend Backend
	options HandlerOptions
	events  eventCache

	// documents are the encoded discovery documents of one generation of the served types.
	documents struct {
		sync.Mutex
		generation uint64
		byPath     map[string]document
	}
}

// NewHandler returns a handler that serves the types and objects of a backend. It is safe for concurrent use.
// A watch ends with the context of its request: to shut down, a server with watches cancels these contexts.
func NewHandler(b Backend, options HandlerOptions) http.Handler {
	if options.Version == nil {
		options.Version = &version.Info{
			Major: "1", Minor: "37", GitVersion: "v1.37.0", GitTreeState: "clean", Compiler: "gc",
		}
	}
	options.BookmarkInterval = cmp.Or(max(options.BookmarkInterval, 0), DefaultBookmarkInterval)
	options.WatchTimeout = cmp.Or(max(options.WatchTimeout, 0), DefaultWatchTimeout)
	if options.Now == nil {
		options.Now = time.Now
	}
	options.WriteTimeout = cmp.Or(options.WriteTimeout, DefaultWriteTimeout)
	return &handler{backend: b, options: options}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-cache, private")
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch path := strings.TrimSuffix(r.URL.Path, "/"); {
	case slices.Contains([]string{"/healthz", "/readyz", "/livez"}, r.URL.Path):
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = io.WriteString(w, "ok") // the only error is that the client has disconnected
	case path == "/version" && isRead:
		writeJSON(w, r, http.StatusOK, h.options.Version)
	case path == "/version":
		WriteError(w, r, errMethodNotAllowed())
	case h.serveDocument(w, r):
	default:
		h.serveResource(w, r)
	}
}

// resource is the target of a request, with its type as it was when the request arrived.
type resource struct {
	requestTarget
	collection Collection
	typ        Type
	version    *Version
	options    *HandlerOptions
}

func (h *handler) serveResource(w http.ResponseWriter, r *http.Request) {
	t, err := h.resolve(r.URL.Path)
	if err != nil {
		WriteError(w, r, err)
		return
	}
	switch {
	case t == nil && strings.HasPrefix(r.URL.Path, "/api/"):
		WriteError(w, r, errNoSuchResource())
		return
	case t == nil:
		notFound(w)
		return
	}
	t.typ.Warn(w.Header(), t.gv.Version)
	writer, writable := h.backend.(Writer)
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case !isRead && writable:
		h.write(w, r, writer, t)
	case !isRead:
		WriteError(w, r, apierrors.NewMethodNotSupported(t.typ.GroupResource(), verbOf(r.Method, t.name)))
	case t.name != "":
		h.get(w, r, t)
	default:
		h.serveCollection(w, r, t)
	}
}

// serveCollection serves a list, or a watch if the parameter "watch" is set.
func (h *handler) serveCollection(w http.ResponseWriter, r *http.Request, res *resource) {
	e, err := newEncoder(r, res)
	if err != nil {
		WriteError(w, r, err)
		return
	}
	switch options, err := h.listOptions(r); {
	case err != nil:
		WriteError(w, r, err)
	case options.Watch:
		h.watch(w, r, e, options)
	default:
		h.list(w, r, e, options)
	}
}

// listOptions parses the parameters in a time slice, because parsing a long selector takes milliseconds.
func (h *handler) listOptions(r *http.Request) (*listOptions, error) {
	timeSlice := NewTimeSlice(h.options.Scheduler)
	if err := timeSlice.Begin(r.Context()); err != nil {
		return nil, err
	}
	defer timeSlice.End()
	return parseListOptions(r.URL.Query())
}

// verbOf returns the Kubernetes verb of a write, or "" if the method is unknown.
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

// resolve returns the resource of a path. It returns nil without an error if the path is unknown.
func (h *handler) resolve(path string) (*resource, error) {
	t, ok := parsePath(path)
	if !ok {
		return nil, nil
	}
	_, writable := h.backend.(Writer)
	if c := h.backend.Collection(schema.GroupResource{Group: t.gv.Group, Resource: t.resource}); c != nil {
		if versioned, ok := c.(Versioned); ok {
			c = versioned.InVersion(t.gv.Version)
		}
		target := &resource{requestTarget: t, collection: c, typ: c.Type(), options: &h.options}
		target.version = target.typ.Version(t.gv.Version)
		switch {
		case target.version == nil || t.hasWrongNamespace(target.typ):
		case writable && slices.Contains(target.version.UnsupportedSubresources, t.subresource):
			return nil, errUnserved(target.typ.GroupResource(), t.subresource)
		case t.subresource != "" && !slices.Contains(target.version.Subresources, t.subresource):
			return nil, apierrors.NewNotFound(target.typ.GroupResource(), t.name)
		default:
			return target, target.refusedError()
		}
	}
	if h.isBuiltInGroup(t.gv.Group) {
		return nil, errNoSuchResource()
	}
	return nil, nil
}

// hasWrongNamespace reports whether the path has an unexpected namespace, or lacks one.
func (t requestTarget) hasWrongNamespace(typ Type) bool {
	if typ.Namespaced {
		return t.name != "" && !t.namespaced
	}
	return t.namespaced
}

// isBuiltInGroup reports whether a group has a type without a CustomResourceDefinition.
func (h *handler) isBuiltInGroup(group string) bool {
	types, _ := h.backend.ServedTypes()
	return group == "" || slices.ContainsFunc(types,
		func(t Type) bool { return t.Group == group && !t.Custom })
}

func (h *handler) watchTimeout(seconds *int64) time.Duration {
	if seconds != nil && *seconds > 0 {
		return time.Duration(*seconds) * time.Second
	}
	return h.options.WatchTimeout + rand.N(h.options.WatchTimeout)
}
