//go:build unix

package localserver

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// shortDir sets a short directory for sockets, because socket paths have a length limit.
func shortDir(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // removes the temporary directory
	t.Setenv("XDG_RUNTIME_DIR", dir)
}

// TestIdentity verifies that the identity changes with each field that selects another cluster or user.
func TestIdentity(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca")
	must(t, os.WriteFile(file, []byte("a"), 0o600))
	seen := map[string]string{}
	for name, config := range map[string]*rest.Config{
		"plain":       {Host: "https://a"},
		"host":        {Host: "https://b"},
		"token":       {Host: "https://a", BearerToken: "x"},
		"other token": {Host: "https://a", BearerToken: "y"},
		"token file":  {Host: "https://a", BearerToken: "x", BearerTokenFile: "/x"},
		"user":        {Host: "https://a", Username: "u"},
		"as":          {Host: "https://a", Impersonate: rest.ImpersonationConfig{UserName: "u"}},
		"as group": {Host: "https://a", Impersonate: rest.ImpersonationConfig{UserName: "u",
			Groups: []string{"g"}}},
		"authority":     {Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("b")}},
		"file":          {Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAFile: file}},
		"certificate":   {Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CertData: []byte("c")}},
		"insecure":      {Host: "https://a", TLSClientConfig: rest.TLSClientConfig{Insecure: true}},
		"server name":   {Host: "https://a", TLSClientConfig: rest.TLSClientConfig{ServerName: "b"}},
		"auth provider": {Host: "https://a", AuthProvider: &clientcmdapi.AuthProviderConfig{Name: "p"}},
	} {
		id, _, err := Identity(t.Context(), config)
		must(t, err)
		if other, ok := seen[id]; ok {
			t.Errorf("%s and %s have the same identity", name, other)
		}
		seen[id] = name
	}
	one, _, _ := Identity(t.Context(), &rest.Config{Host: "https://a", BearerToken: "x", BearerTokenFile: "/x"})
	renewed, _, _ := Identity(t.Context(), &rest.Config{Host: "https://a", BearerToken: "y",
		BearerTokenFile: "/x"})
	same, _, _ := Identity(t.Context(),
		&rest.Config{Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("a")}})
	if one != renewed || seen[same] != "file" {
		t.Error("the identity depends on a renewed token, or on whether a file or its content is given")
	}
}

// newExecPlugin returns a config with an exec plugin that prints credentials from a file. The credentials are
// expired, so the plugin runs each time.
func newExecPlugin(t *testing.T, host, name string) (config *rest.Config, setStatus func(status string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	config = &rest.Config{Host: host, ExecProvider: &clientcmdapi.ExecConfig{
		Command: "cat", Args: []string{file}, APIVersion: "client.authentication.k8s.io/v1",
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
	}}
	return config, func(status string) {
		t.Helper()
		text := `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"expirationTimestamp":"2020-01-01T00:00:00Z",` + status + `}}`
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}
}

// TestIdentityOfPrograms verifies that the identity depends on the account of the exec plugin. It depends
// neither on the environment nor on renewed credentials.
func TestIdentityOfPrograms(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "-")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w,
			`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview","status":{"userInfo":{"username":"`+user+`"}}}`)
	}))
	defer server.Close()
	jwt := func(claims string) string {
		return `"token":"x.` + base64.RawURLEncoding.EncodeToString([]byte(claims)) + `.y"`
	}
	for name, test := range map[string]struct{ host, first, renewed, other string }{
		"JWT": {
			"https://a", jwt(`{"iss":"i","sub":"reader","iat":1}`), jwt(`{"iss":"i","sub":"reader","iat":2}`),
			jwt(`{"iss":"i","sub":"admin","iat":2}`),
		},
		"groups of a JWT": {
			"https://a", jwt(`{"iss":"i","sub":"reader","groups":["a"]}`),
			jwt(`{"iss":"i","sub":"reader","groups":["a"],"jti":"x"}`),
			jwt(`{"iss":"i","sub":"reader","groups":["b"]}`),
		},
		"opaque token": {server.URL, `"token":"reader-1"`, `"token":"reader-2"`,
			`"token":"admin-1"`},
		"opaque token of an unreachable server": {"https://127.0.0.1:1", `"token":"a"`, `"token":"a"`,
			`"token":"b"`},
	} {
		t.Run(name, func(t *testing.T) {
			config, setStatus := newExecPlugin(t, test.host, "credentials")
			identify := func(status string) string {
				t.Helper()
				setStatus(status)
				id, known, err := Identity(t.Context(), config)
				if err != nil || known == strings.Contains(name, "unreachable") {
					t.Fatalf("Identity() = %v, %v; the account is known unless the server is unreachable", known, err)
				}
				return id
			}
			first := identify(test.first)
			t.Setenv("STARSHIP_SESSION_KEY", "another terminal")
			if identify(test.renewed) != first {
				t.Error("renewed credentials, or another environment, change the identity")
			}
			if identify(test.other) == first {
				t.Error("two accounts have the same identity")
			}
		})
	}
	config, setStatus := newExecPlugin(t, "https://a", "failing")
	setStatus(`"token":""`)
	if id, _, err := Identity(t.Context(), config); err == nil {
		t.Errorf("Identity() of a plugin without credentials = %s, want an error", id)
	}
}

// TestSocketDirsOfOthersAreNotTrusted verifies that a client refuses a socket that another user could have
// created.
func TestSocketDirsOfOthersAreNotTrusted(t *testing.T) {
	for name, makeUntrusted := range map[string]func(t *testing.T, p SocketDir) error{
		"folder is open": func(_ *testing.T, p SocketDir) error { return os.Chmod(p.Dir, 0o755) },
		"parent is open": func(_ *testing.T,
			p SocketDir) error {
			return os.Chmod(filepath.Dir(p.Dir), 0o777)
		},
		"socket is open": func(_ *testing.T, p SocketDir) error { return os.Chmod(p.Socket(), 0o666) },
		"socket is a file": func(_ *testing.T, p SocketDir) error {
			return errors.Join(os.Remove(p.Socket()), os.WriteFile(p.Socket(), nil, 0o600))
		},
		"folder is a link": func(t *testing.T, p SocketDir) error {
			other := filepath.Join(t.TempDir(), "other")
			return errors.Join(os.Rename(p.Dir, other), os.Symlink(other, p.Dir))
		},
	} {
		t.Run(name, func(t *testing.T) {
			shortDir(t)
			config := &rest.Config{Host: "https://a"}
			id, _, err := Identity(t.Context(), config)
			must(t, err)
			p := SocketDirFor(id)
			must(t, p.create())
			listener, err := net.Listen("unix", p.Socket())
			must(t, err)
			defer listener.Close()
			must(t, errors.Join(os.Chmod(p.Socket(), 0o600), p.verify()))
			if err := makeUntrusted(t, p); err != nil {
				t.Fatal(err)
			}
			if _, err := NewClient(t.Context(), config); err == nil || errors.Is(err, ErrNoServer) {
				t.Errorf("NewClient() = %v, want an error other than ErrNoServer", err)
			}
		})
	}
}

// TestStaleSocket verifies that clients get ErrNoServer from the socket of a killed server, and that the next
// server replaces the socket. The answer of a server that reloads its config meanwhile is refused.
func TestStaleSocket(t *testing.T) {
	shortDir(t)
	config := &rest.Config{Host: "https://a"}
	id, _, _ := Identity(t.Context(), config)
	p := SocketDirFor(id)
	if _, err := NewClient(t.Context(), config); !errors.Is(err, ErrNoServer) {
		t.Errorf("NewClient() without a server = %v, want ErrNoServer", err)
	}
	must(t, p.create())
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.Socket()})
	must(t, err)
	listener.SetUnlinkOnClose(false)
	must(t, errors.Join(os.Chmod(p.Socket(), 0o600), listener.Close()))
	client, err := NewClient(t.Context(), config)
	must(t, err)
	if _, err := client.Info(t.Context()); !errors.Is(err, ErrNoServer) {
		t.Errorf("Info() through a socket without a server = %v, want ErrNoServer", err)
	}
	var reloaded atomic.Value
	reloaded.Store("old")
	reload := func(_ http.ResponseWriter, r *http.Request) { reloaded.Store(r.URL.Path) }
	ctx, cancel := context.WithCancel(t.Context())
	listening, serveErr := make(chan struct{}), make(chan error, 1)
	go func() { // ends with Stop
		serveErr <- Serve(ctx, Options{Dir: p,
			Info:    func() Info { return Info{Identity: id, Config: reloaded.Load().(string)} },
			Handler: http.HandlerFunc(reload)}, func() { close(listening) })
	}()
	defer cancel()
	<-listening
	if info, err := client.Info(t.Context()); err != nil || info.Identity != id {
		t.Errorf("Info() = %+v, %v, want the identity", info, err)
	}
	if _, err := client.Open(t.Context(), "/new", nil, "old"); !errors.Is(err, ErrOtherConfig) {
		t.Errorf("Open() = %v for a config that was replaced meanwhile, want ErrOtherConfig", err)
	}
	for _, config := range []string{"", "/new"} {
		body, err := client.Open(t.Context(), "/new", nil, config)
		if err != nil {
			t.Fatalf("Open() with the config %q: %v", config, err)
		}
		body.Close()
	}
	if _, err := client.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-serveErr; err != nil {
		t.Error(err)
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
