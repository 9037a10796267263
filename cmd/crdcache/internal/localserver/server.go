package localserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/serving/readapi"
)

// Info is the server's description of itself.
type Info struct {
	Identity string    `json:"identity"`
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	// FilesTime is the time of the content of served files, or zero.
	FilesTime time.Time `json:"filesTime,omitzero"`
	// Config is the digest of the index configs.
	Config string `json:"config"`
	// ConfigStatus describes the state of the config files. It is empty without files.
	ConfigStatus string       `json:"configStatus,omitempty"`
	Types        []CachedType `json:"types"`
	// Absent are the requested names that cannot be cached now.
	Absent []Absence `json:"absent,omitempty"`
	// Warnings are the clusters of the process that cannot be read now, and the types that lack objects.
	Warnings []Absence `json:"warnings,omitempty"`
	// Page is set if the server has a web page.
	Page bool `json:"page,omitempty"`
}

type CachedType struct {
	Resource discovery.Resource `json:"resource"`
	// Namespace is the only cached namespace. Empty means all.
	Namespace string `json:"namespace,omitempty"`
	State     string `json:"state"`
	// Live is set if the cache is synced and its watch is running.
	Live bool `json:"fresh"`
	// Reduced is set if the cached objects lack fields.
	Reduced bool `json:"reduced,omitempty"`
	Objects int  `json:"objects"`
	// Indexes are the names of the config's indexes.
	Indexes []string `json:"indexes,omitempty"`
}

// Absence says why a requested name or a cluster is not cached.
type Absence struct {
	Name   string `json:"name"`
	Reason string `json:"why"`
}

// Resolution has the types that a name matches.
type Resolution struct {
	Info
	Resources []discovery.Resource `json:"resources"`
}

type Options struct {
	Dir     SocketDir
	Info    func() Info
	Resolve func(name string) ([]discovery.Resource, error)
	// ValidateRequest returns an error if the cache cannot answer a request.
	ValidateRequest func(readapi.Request) error
	// Handler serves all other requests.
	Handler http.Handler
	// ActiveRequests ends the server when it is idle. nil means never.
	ActiveRequests *ActiveRequests
	// Page is the web page, or nil. Without a listener, another Server of the process serves the page.
	Page    *Page
	Metrics *Metrics
	// OnStopped, if set, is called after the last answer. When it has returned, Serve releases the lock, for
	// which the clients that stop the server wait.
	OnStopped func()
}

// Server answers the commands of one user on a socket.
type Server struct {
	options Options
	cancel  context.CancelFunc
}

var ErrAlreadyRunning = errors.New(
	"another cache server runs for this cluster and user: see 'serve status', or stop it with 'serve stop'")

// Serve serves until ctx ends, a command stops the server, or the server is idle. It calls onListening when
// clients can connect. Then it returns nil unless a listener fails.
func Serve(ctx context.Context, options Options, onListening func()) error {
	if err := options.Dir.create(); err != nil {
		return err
	}
	file, err := options.Dir.openLock()
	if err != nil {
		return err
	}
	defer file.Close() // releases the lock
	if !tryLock(file) {
		return ErrAlreadyRunning
	}
	// This process has the lock, so an existing socket belongs to a process that has ended.
	if err := os.Remove(options.Dir.Socket()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", options.Dir.Socket())
	if err != nil {
		return err
	}
	if err := os.Chmod(options.Dir.Socket(), 0o600); err != nil {
		listener.Close()
		return err
	}
	s := &Server{options: options}
	err = s.serve(ctx, listener, onListening)
	if options.OnStopped != nil {
		options.OnStopped()
	}
	return errors.Join(err, file.Close())
}

// ServePage works like Serve for a web page without a socket for commands.
func ServePage(ctx context.Context, page *Page, activity *ActiveRequests, onListening func()) error {
	return (&Server{options: Options{Page: page, ActiveRequests: activity}}).serve(ctx, nil, onListening)
}

func (s *Server) serve(ctx context.Context, listener net.Listener, onListening func()) (err error) {
	s.options.ActiveRequests = cmp.Or(s.options.ActiveRequests, NewActiveRequests(0))
	ctx, s.cancel = context.WithCancel(ctx)
	defer s.cancel()
	var servers []*http.Server
	serveErrs := make(chan error, 3)
	startServer := func(server *http.Server, listener net.Listener) {
		go func() { serveErrs <- server.Serve(listener) }() // ended by Close
		servers = append(servers, server)
	}
	if listener != nil {
		startServer(&http.Server{
			Handler: s, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 1 << 20,
			BaseContext: func(net.Listener) context.Context { return ctx },
		}, listener)
	}
	if s.options.Page != nil && s.options.Page.Listener != nil {
		startServer(s.pageServer(ctx), s.options.Page.Listener)
	}
	if m := s.options.Metrics; m != nil {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", m.Handler)
		startServer(&http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, m.Listener)
	}
	onListening()
	select {
	case err = <-serveErrs:
	case <-ctx.Done():
	case <-s.options.ActiveRequests.ended:
	}
	for _, server := range servers {
		err = errors.Join(err, server.Close())
	}
	return err
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.options.ActiveRequests.begin()
	defer s.options.ActiveRequests.end()
	switch {
	case r.URL.Path == "/crdcache/server":
		writeJSON(w, s.options.Info())
	case r.URL.Path == "/crdcache/types":
		resources, err := s.options.Resolve(r.URL.Query().Get("name"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		writeJSON(w, Resolution{Info: s.options.Info(), Resources: resources})
	case r.URL.Path == "/crdcache/link" && r.Method == http.MethodPost && s.options.Page != nil:
		writeJSON(w, s.options.Page.LoginLink())
	case r.URL.Path == "/crdcache/stop" && r.Method == http.MethodPost:
		writeJSON(w, s.options.Info())
		_ = http.NewResponseController(w).Flush() // the end closes the connection
		s.cancel()
	default:
		s.serveCache(w, r)
	}
}

// serveCache answers from the caches. If the client accepts only cached answers, it validates the request.
func (s *Server) serveCache(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(onlyCachedHeader) != "" {
		request, _ := readapi.ParseRequest(r)
		if err := s.options.ValidateRequest(request); err != nil {
			http.Error(w, err.Error(), http.StatusMisdirectedRequest)
			return
		}
	}
	s.options.Handler.ServeHTTP(w, r)
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // fails only if the client has disconnected
}

// ActiveRequests counts the active requests of the servers of a process. It is safe for concurrent use.
type ActiveRequests struct {
	idle time.Duration
	// ended is closed after this time without a request.
	ended chan struct{}

	mu struct {
		sync.Mutex
		active int
		timer  *time.Timer
	}
}

// NewActiveRequests returns an ActiveRequests that ends its servers after a time without a request. Zero
// means never.
func NewActiveRequests(idle time.Duration) *ActiveRequests {
	a := &ActiveRequests{idle: cmp.Or(idle, math.MaxInt64), ended: make(chan struct{})}
	a.mu.timer = time.AfterFunc(a.idle, sync.OnceFunc(func() { close(a.ended) }))
	return a
}

// begin starts a request. Without an end, the servers are not idle.
func (a *ActiveRequests) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.active++
	a.mu.timer.Stop()
}

func (a *ActiveRequests) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.active--; a.mu.active == 0 {
		a.mu.timer.Reset(a.idle)
	}
}

func (i Info) String() string {
	return fmt.Sprintf("process %d caches these types of %s since %s", i.PID, i.Host,
		i.Started.Format(time.RFC3339))
}

// Page is a web page for browsers. Serve and ServePage close the listener. An open page counts as a request.
type Page struct {
	Listener net.Listener
	Handler  http.Handler
	// LoginLink returns a login link for one browser. Every client of the socket can request it.
	LoginLink func() string
}

// Metrics are served to Prometheus at /metrics. Serve closes the listener. A scrape does not count as a
// request.
type Metrics struct {
	Listener net.Listener
	Handler  http.Handler
}

// pageServer returns the HTTP server of the page. Its requests count as activity.
func (s *Server) pageServer(ctx context.Context) *http.Server {
	countedHandler := func(w http.ResponseWriter, r *http.Request) {
		s.options.ActiveRequests.begin()
		defer s.options.ActiveRequests.end()
		s.options.Page.Handler.ServeHTTP(w, r)
	}
	return &http.Server{
		Handler: http.HandlerFunc(countedHandler), ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:    time.Minute,
		MaxHeaderBytes: 1 << 16,
		BaseContext:    func(net.Listener) context.Context { return ctx },
	}
}
