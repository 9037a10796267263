package local

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

// Info is what a server says of itself.
type Info struct {
	Identity string    `json:"identity"`
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	// Config is a digest of the index configs that it was given.
	Config string `json:"config"`
	Types  []Kept `json:"types"`
	// Absent are the names that stand for nothing which can be kept now.
	Absent []Absent `json:"absent,omitempty"`
	// Page says that there is a page for browsers.
	Page bool `json:"page,omitempty"`
}

// Kept is a type that a server keeps.
type Kept struct {
	Resource discovery.Resource `json:"resource"`
	// Namespace is the only one that is kept; empty for all.
	Namespace string `json:"namespace,omitempty"`
	State     string `json:"state"`
	// Fresh says that the cache is filled and in contact with the API server.
	Fresh   bool `json:"fresh"`
	Objects int  `json:"objects"`
	// Indexes are the names of those of the config.
	Indexes []string `json:"indexes,omitempty"`
}

// Absent is a name that stands for nothing which can be kept.
type Absent struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Answer is what a name of a type stands for.
type Answer struct {
	Info
	Resources []discovery.Resource `json:"resources"`
}

// Options are what a Server serves.
type Options struct {
	// Place is where it listens.
	Place Place
	// Info returns what it says of itself now.
	Info func() Info
	// Resolve returns what a name of a type stands for.
	Resolve func(name string) ([]discovery.Resource, error)
	// Keeps returns why a request is not to be answered from what is kept; nil where it is.
	Keeps func(readapi.Request) error
	// Handler answers all else.
	Handler http.Handler
	// Idle ends the server when nobody has asked for as long; 0: never.
	Idle time.Duration
	// Page is served beside the socket; nil for none.
	Page *Page
	// End, if set, is called when nobody is answered any more. The place is held until it returns, and
	// whoever has stopped the server hears of the end after that.
	End func()
}

// Server answers the commands of one user on a socket.
type Server struct {
	options Options
	stop    context.CancelCauseFunc

	mu struct {
		sync.Mutex
		active int
		idle   *time.Timer // nil without Options.Idle
		// stopping are the connections of those who have stopped the server, which its end closes.
		stopping []net.Conn
		ended    bool
	}
}

// Why a server ends by itself.
var (
	ErrStopped = errors.New("stopped by 'serve stop'")
	ErrIdle    = errors.New("nobody has asked for a while")
)

// ErrServed is the error where another server listens at the place.
var ErrServed = errors.New(
	"another server keeps types for this cluster and user: see 'serve status', and end it with 'serve stop'")

// Serve listens and answers until ctx ends, a command stops the server, or it has been idle for long enough.
// listening is called once it can be reached. The error is nil when it was asked to end.
func Serve(ctx context.Context, options Options, listening func()) error {
	if err := options.Place.make(); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(options.Place.Folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close() // which gives up the lock, unless that is done
	if !lock(file) {
		return ErrServed
	}
	// Whoever left a socket there has ended: it had the lock.
	if err := os.Remove(options.Place.Socket()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", options.Place.Socket())
	if err != nil {
		return err
	}
	if err := os.Chmod(options.Place.Socket(), 0o600); err != nil {
		listener.Close()
		return err
	}
	s := &Server{options: options}
	err = s.serve(ctx, listener, listening)
	if options.End != nil {
		options.End()
	}
	return errors.Join(err, file.Close(), s.tellEnd())
}

// ServePage serves a page that commands know nothing of until ctx ends, or nobody has asked for as long as
// idle; 0: never. listening is called once it can be reached. The error is nil when it was asked to end.
func ServePage(ctx context.Context, page *Page, idle time.Duration, listening func()) error {
	return (&Server{options: Options{Page: page, Idle: idle}}).serve(ctx, nil, listening)
}

// serve answers on a listener, if there is one, and shows the page, if there is one.
func (s *Server) serve(ctx context.Context, listener net.Listener, listening func()) (err error) {
	ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	if s.options.Idle > 0 {
		s.mu.idle = time.AfterFunc(s.options.Idle, func() { s.stop(ErrIdle) })
		defer s.mu.idle.Stop()
	}
	var servers []*http.Server
	failed := make(chan error, 2)
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
	if s.options.Page != nil {
		begin(s.page(ctx), s.options.Page.Listener)
	}
	listening()
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	for _, server := range servers {
		err = errors.Join(err, server.Close())
	}
	return err
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.begin()
	defer s.end()
	switch {
	case r.URL.Path == "/crdcache/server":
		reply(w, s.options.Info())
	case r.URL.Path == "/crdcache/types":
		resources, err := s.options.Resolve(r.URL.Query().Get("name"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		reply(w, Answer{Info: s.options.Info(), Resources: resources})
	case r.URL.Path == "/crdcache/link" && r.Method == http.MethodPost && s.options.Page != nil:
		reply(w, s.options.Page.Link())
	case r.URL.Path == stopPath && r.Method == http.MethodPost:
		s.serveStop(w)
	default:
		s.pass(w, r)
	}
}

// pass has the handler answer, unless what the client wants from the cache alone is not to be had there.
func (s *Server) pass(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(onlyKept) != "" {
		asked, _ := readapi.ParseRequest(r)
		if err := s.options.Keeps(asked); err != nil {
			http.Error(w, err.Error(), http.StatusMisdirectedRequest)
			return
		}
	}
	s.options.Handler.ServeHTTP(w, r)
}

func reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the client has gone: nobody is left to tell
}

// begin counts a request; while there is one, the server is not idle.
func (s *Server) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.active++
	if s.mu.idle != nil {
		s.mu.idle.Stop()
	}
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.active--; s.mu.active == 0 && s.mu.idle != nil {
		s.mu.idle.Reset(s.options.Idle)
	}
}

// String describes a server in one line.
func (i Info) String() string {
	return fmt.Sprintf("process %d keeps what follows of %s since %s", i.PID, i.Host,
		i.Started.Format(time.RFC3339))
}

// Page is what a server shows to browsers. Serve and ServePage close the listener; an open page keeps a
// server from being idle.
type Page struct {
	Listener net.Listener
	Handler  http.Handler
	// Link returns the address that lets one browser in. It is given to whoever may ask on the socket.
	Link func() string
}

// page returns the server of the page, whose requests count as those of the socket do.
func (s *Server) page(ctx context.Context) *http.Server {
	counted := func(w http.ResponseWriter, r *http.Request) {
		s.begin()
		defer s.end()
		s.options.Page.Handler.ServeHTTP(w, r)
	}
	return &http.Server{
		Handler: http.HandlerFunc(counted), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 1 << 16,
		BaseContext:    func(net.Listener) context.Context { return ctx },
	}
}
