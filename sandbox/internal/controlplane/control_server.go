package controlplane

import (
	"crypto/rand"
	"encoding/json"
	"net"
	"net/http"
)

// state is the file with which other processes find the supervisor.
type state struct {
	// ControlURL and ControlToken give access to the supervisor.
	ControlURL   string `json:"controlURL"`
	ControlToken string `json:"controlToken"`
	// EtcdURL is etcd's client endpoint, without authentication.
	EtcdURL string `json:"etcdURL"`
}

// controlServer lets other processes of the same user control a supervisor through loopback HTTP. Unix
// sockets are unsuitable, because their paths are limited to about a hundred characters.
type controlServer struct {
	server *http.Server
}

// serveControl starts the server and writes its address to the state file.
func serveControl(cp *ControlPlane) (*controlServer, error) {
	listener, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return nil, err
	}
	st := state{
		ControlURL:   "http://" + listener.Addr().String(),
		ControlToken: rand.Text(),
		EtcdURL:      cp.probes.etcdURL,
	}
	data, err := json.Marshal(st)
	if err == nil {
		err = writeFile(cp.layout.state(), append(data, '\n'))
	}
	if err != nil {
		listener.Close()
		return nil, err
	}
	server := &http.Server{Handler: requireToken(st.ControlToken, controlHandler(cp))}
	go func() { _ = server.Serve(listener) }() // ended by close
	return &controlServer{server: server}, nil
}

func (s *controlServer) close() { _ = s.server.Close() }

func requireToken(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func controlHandler(cp *ControlPlane) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(cp.Status(r.Context()))
	})
	mux.HandleFunc("POST /restart/{component}", func(w http.ResponseWriter, r *http.Request) {
		handleOperation(w, r, func(c Component) error { return cp.Restart(r.Context(), c) })
	})
	mux.HandleFunc("POST /kill/{component}", func(w http.ResponseWriter, r *http.Request) {
		handleOperation(w, r, cp.Kill)
	})
	mux.HandleFunc("POST /down", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		cp.requestStop()
	})
	return mux
}

func handleOperation(w http.ResponseWriter, r *http.Request, op func(Component) error) {
	c, err := ParseComponent(r.PathValue("component"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := op(c); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
