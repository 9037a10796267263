package localserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/readapi"
)

// Info is the server's description of itself.
type Info struct {
	Identity string    `json:"identity"`
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	// Config is a digest of its index configs.
	Config string `json:"config"`
	// ConfigStatus describes the state of its config files; empty without files.
	ConfigStatus string       `json:"configStatus,omitempty"`
	Types        []CachedType `json:"types"`
	// Absent are the requested names that cannot be cached now.
	Absent []Absence `json:"absent,omitempty"`
	// Unreachable are the clusters of the process that cannot be read now.
	Unreachable []Absence `json:"unreachable,omitempty"`
	// Page is set if it has a web page.
	Page bool `json:"page,omitempty"`
}

// CachedType is a type that the server caches.
type CachedType struct {
	Resource discovery.Resource `json:"resource"`
	// Namespace is the only cached namespace. Empty means all.
	Namespace string `json:"namespace,omitempty"`
	State     string `json:"state"`
	// Live is set if the cache is synced and its watch is live.
	Live    bool `json:"fresh"`
	Objects int  `json:"objects"`
	// Indexes are the names of the config's indexes.
	Indexes []string `json:"indexes,omitempty"`
}

// Absence is a requested name or a cluster that cannot be cached.
type Absence struct {
	Name   string `json:"name"`
	Reason string `json:"why"`
}

// Resolution is the result of resolving a type name.
type Resolution struct {
	Info
	Resources []discovery.Resource `json:"resources"`
}

// Options configure a Server.
type Options struct {
	// Dir is the socket directory.
	Dir SocketDir
	// Info returns the current description of the server.
	Info func() Info
	// Resolve resolves a type name.
	Resolve func(name string) ([]discovery.Resource, error)
	// CanAnswer returns why the cache cannot answer a request, or nil if it can.
	CanAnswer func(readapi.Request) error
	// Handler serves all other requests.
	Handler http.Handler
	// Activity ends the server when it is idle. nil means never.
	Activity *Activity
	// Page is the web page, or nil. Without a listener, another server of the process serves it.
	Page *Page
	// Metrics are the metrics for Prometheus, or nil.
	Metrics *Metrics
	// End, if set, is called after the last answer. The lock is held until it returns. Afterwards, the
	// clients that stopped the server get their response.
	End func()
}

// Server answers the commands of one user on a socket.
type Server struct {
	options Options
	cancel  context.CancelFunc

	mu struct {
		sync.Mutex
		// stopping are the connections of clients that wait for the end.
		stopping []net.Conn
		ended    bool
	}
}

// ErrServed is returned if another server holds the lock.
var ErrServed = errors.New(
	"another cache server runs for this cluster and user: see 'serve status', or stop it with 'serve stop'")

// Serve serves until ctx ends, a command stops the server, or it is idle. It calls listening when clients can
// connect. It returns nil after a requested stop.
func Serve(ctx context.Context, options Options, listening func()) error {
	if err := options.Dir.create(); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(options.Dir.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close() // releases the lock
	if !tryLock(file) {
		return ErrServed
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
	err = s.serve(ctx, listener, listening)
	if options.End != nil {
		options.End()
	}
	return errors.Join(err, file.Close(), s.closeStopping())
}

// ServePage serves only a web page, without a socket for commands, until ctx ends or it is idle. It calls
// listening when browsers can connect. It returns nil after a requested stop.
func ServePage(ctx context.Context, page *Page, activity *Activity, listening func()) error {
	return (&Server{options: Options{Page: page, Activity: activity}}).serve(ctx, nil, listening)
}

func (s *Server) serve(ctx context.Context, listener net.Listener, listening func()) (err error) {
	ctx, s.cancel = context.WithCancel(ctx)
	defer s.cancel()
	var idle <-chan struct{}
	if s.options.Activity != nil {
		idle = s.options.Activity.ended
	}
	var servers []*http.Server
	failed := make(chan error, 3)
	begin := func(server *http.Server, listener net.Listener) {
		go func() { failed <- server.Serve(listener) }() // ended by Close
		servers = append(servers, server)
	}
	if listener != nil {
		begin(&http.Server{
			Handler: s, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 1 << 20,
			BaseContext: func(net.Listener) context.Context { return ctx },
		}, listener)
	}
	if s.options.Page != nil && s.options.Page.Listener != nil {
		begin(s.page(ctx), s.options.Page.Listener)
	}
	if m := s.options.Metrics; m != nil {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", m.Handler)
		begin(&http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, m.Listener)
	}
	listening()
	select {
	case err = <-failed:
	case <-ctx.Done():
	case <-idle:
	}
	for _, server := range servers {
		err = errors.Join(err, server.Close())
	}
	return err
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.options.Activity.begin()
	defer s.options.Activity.end()
	switch {
	case r.URL.Path == "/crdcache/server":
		reply(w, s.options.Info())
	case r.URL.Path == "/crdcache/types":
		resources, err := s.options.Resolve(r.URL.Query().Get("name"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		reply(w, Resolution{Info: s.options.Info(), Resources: resources})
	case r.URL.Path == "/crdcache/link" && r.Method == http.MethodPost && s.options.Page != nil:
		reply(w, s.options.Page.LoginLink())
	case r.URL.Path == stopPath && r.Method == http.MethodPost:
		s.serveStop(w)
	default:
		s.serveCache(w, r)
	}
}

// serveCache calls the handler, unless the client accepts only cached answers and the cache has none.
func (s *Server) serveCache(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(onlyCachedHeader) != "" {
		request, _ := readapi.ParseRequest(r)
		if err := s.options.CanAnswer(request); err != nil {
			http.Error(w, err.Error(), http.StatusMisdirectedRequest)
			return
		}
	}
	s.options.Handler.ServeHTTP(w, r)
}

func reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // fails only if the client has disconnected
}

// Activity counts the active requests of the servers of a process. It is safe for concurrent use. Its methods
// accept nil.
type Activity struct {
	idle time.Duration
	// ended is closed after the idle time without a request.
	ended chan struct{}

	mu struct {
		sync.Mutex
		active int
		timer  *time.Timer
	}
}

// NewActivity returns an Activity that ends its servers after this time without a request. It returns nil for
// zero, which means never.
func NewActivity(idle time.Duration) *Activity {
	if idle == 0 {
		return nil
	}
	a := &Activity{idle: idle, ended: make(chan struct{})}
	a.mu.timer = time.AfterFunc(idle, sync.OnceFunc(func() { close(a.ended) }))
	return a
}

// begin counts an active request. The servers are not idle during a request.
func (a *Activity) begin() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.active++
	a.mu.timer.Stop()
}

func (a *Activity) end() {
	if a == nil {
		return
	}
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

// page returns the HTTP server of the page. Its requests count like those of the socket.
func (s *Server) page(ctx context.Context) *http.Server {
	counted := func(w http.ResponseWriter, r *http.Request) {
		s.options.Activity.begin()
		defer s.options.Activity.end()
		s.options.Page.Handler.ServeHTTP(w, r)
	}
	return &http.Server{
		Handler: http.HandlerFunc(counted), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 1 << 16,
		BaseContext:    func(net.Listener) context.Context { return ctx },
	}
}
