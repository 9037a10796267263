package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/display"
	"github.com/crdcache/crdcache/serving/web/internal/gate"
)

const (
	// maxWorkPerUser limits the concurrent expensive requests of a user. workTimeout limits the time of a
	// request, including the wait for a slot.
	maxWorkPerUser    = 4
	workTimeout       = 10 * time.Second
	maxStreamsPerUser = 32
	// maxTotalWork and maxTotalStreams are the limits for all users.
	maxTotalWork    = 64
	maxTotalStreams = 1024
	// writeTimeout is how long a browser may block a write.
	writeTimeout = 10 * time.Second
)

// Handler serves the page. Create it with NewHandler.
type Handler struct {
	source        Source
	clusters      clusterPages
	visibleScopes func(r *http.Request, types []schema.GroupVersionResource) ([]Scope, error) // nil: all
	knownScopes   func(r *http.Request, types []schema.GroupVersionResource) []Scope          // nil: visible
	gate          *gate.Gate
	redactor      *display.Redactor
	feed          *feed
	figures       *typeFigures
	tables        *resultCache
	graph         referenceGraph
	counts        healthCounts
	user          func(*http.Request) string // the user of a request
	limiter       *workLimiter
	streams       *workLimiter
	closed        chan struct{}
	close         sync.Once
}

// NewHandler returns a handler for the page of a source, or an error if the source is invalid. Call Close
// when it is no longer used.
func NewHandler(source Source, options Options) (*Handler, error) {
	h, err := newClusterPages(source, options)
	if err != nil {
		return nil, err
	}
	newGate := gate.New
	if options.Authenticated {
		newGate = gate.NewAuthenticated
	}
	h.gate = newGate(h.clusters.routes(), options.Hosts, func(w http.ResponseWriter, _ *http.Request,
		status int, err error) {
		writeError(w, status, err)
	})
	return h, nil
}

// newHandler returns the handler of one cluster, without a gate.
func newHandler(source Source, options Options) (*Handler, error) {
	if err := source.validate(); err != nil {
		return nil, err
	}
	h := &Handler{
		source: source, visibleScopes: options.Visible, knownScopes: options.Known,
		redactor: display.NewRedactor(options.ShowSecrets), feed: newFeed(), figures: newFigures(source),
		tables: newResultCache(),
		user:   options.User, limiter: newWorkLimiter(maxWorkPerUser, maxTotalWork),
		streams: newWorkLimiter(maxStreamsPerUser, maxTotalStreams), closed: make(chan struct{}),
	}
	if h.user == nil {
		h.user = func(*http.Request) string { return "" }
	}
	go h.figures.run(h.closed) // ended by Close
	return h, nil
}

// Login returns a path with a one-time token, "/login?token=…", which admits one browser within an hour. Each
// call returns another token. Only the last sixteen unused tokens are valid. Login must not be called with
// Options.Authenticated.
func (h *Handler) Login() string { return h.gate.Login() }

// Allow reports whether the Host, method and origin of a request are allowed. If not, it writes the error
// response.
func (h *Handler) Allow(w http.ResponseWriter, r *http.Request) bool { return h.gate.Allow(w, r) }

// Close ends all streams and stops the graph. The handler must not be used afterwards. Close can be called
// again.
func (h *Handler) Close() {
	h.close.Do(func() {
		close(h.closed)
		h.graph.stop()
		if len(h.clusters) > 0 && h.clusters[0] == h {
			h.clusters[1:].close()
		}
	})
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The deadline protects the server from slow readers. It fails only for a test recorder.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(workTimeout + writeTimeout))
	h.gate.ServeHTTP(w, r)
}

func (h *Handler) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", serveAsset)
	mux.HandleFunc("GET /api/stream", h.serveStream)
	mux.HandleFunc("GET /api/type", jsonHandler(h.typeDetails))
	mux.HandleFunc("GET /api/table", h.limitConcurrency(h.table))
	mux.HandleFunc("GET /api/rows", h.limitConcurrency(h.rows))
	mux.HandleFunc("GET /api/values", h.limitConcurrency(h.values))
	mux.HandleFunc("GET /api/complete", h.limitConcurrency(h.complete))
	mux.HandleFunc("GET /api/dangling", h.limitConcurrency(h.dangling))
	mux.HandleFunc("GET /api/object", h.limitConcurrency(h.object))
	mux.HandleFunc("GET /api/related", h.limitConcurrency(h.related))
	mux.HandleFunc("GET /api/events", h.limitConcurrency(h.events))
	mux.HandleFunc("GET /api/health", h.limitConcurrency(h.health))
	mux.HandleFunc("GET /api/search", h.limitConcurrency(h.search))
	mux.HandleFunc("GET /api/export", h.export)
	return mux
}

type statusError struct {
	status int
	err    error
}

func (s *statusError) Error() string { return s.err.Error() }
func (s *statusError) Unwrap() error { return s.err }

func notFound(text string) error { return &statusError{http.StatusNotFound, errors.New(text)} }

func forbiddenError(text string) error { return &statusError{http.StatusForbidden, errors.New(text)} }

func jsonHandler(get func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		value, err := get(r)
		if err != nil {
			writeError(w, statusOf(err), err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(value) // fails only if the browser has disconnected
	}
}

// limitConcurrency is jsonHandler for expensive requests. It waits for a slot of the user, and limits the
// time.
func (h *Handler) limitConcurrency(get func(r *http.Request) (any, error)) http.HandlerFunc {
	return jsonHandler(func(r *http.Request) (any, error) {
		ctx, cancel := context.WithTimeoutCause(r.Context(), workTimeout,
			&statusError{http.StatusGatewayTimeout, errors.New("the request took too long; narrow it down")})
		defer cancel()
		release, ok := h.limiter.acquire(ctx, h.user(r))
		if !ok {
			return nil, &statusError{http.StatusServiceUnavailable, errors.New("too many concurrent requests; try again")}
		}
		defer release()
		value, err := get(r.WithContext(ctx))
		if err != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return value, err
	})
}

func statusOf(err error) int {
	var statusErr *statusError
	if errors.As(err, &statusErr) {
		return statusErr.status
	}
	return http.StatusBadRequest
}

type errorAnswer struct {
	Error string `json:"error"`
	// Offset and Length locate an error in a query, in UTF-16 code units.
	Offset int `json:"offset,omitempty"`
	Length int `json:"length,omitempty"`
}

func writeError(w http.ResponseWriter, status int, err error) {
	answer := errorAnswer{Error: err.Error()}
	answer.addPosition(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // fails only if the browser has disconnected
}
