//go:build unix

package local

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// shortDir makes the place of servers a folder with a short name, as the paths of sockets have to be short.
func shortDir(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // it is below the folder of temporary files
	t.Setenv("XDG_RUNTIME_DIR", dir)
}

// TestIdentity: whatever makes another cluster or another user of a config makes another identity.
func TestIdentity(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca")
	if err := os.WriteFile(file, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for name, config := range map[string]*rest.Config{
		"plain":         {Host: "https://a"},
		"host":          {Host: "https://b"},
		"token":         {Host: "https://a", BearerToken: "x"},
		"other token":   {Host: "https://a", BearerToken: "y"},
		"token file":    {Host: "https://a", BearerToken: "x", BearerTokenFile: "/x"},
		"user":          {Host: "https://a", Username: "u"},
		"as":            {Host: "https://a", Impersonate: rest.ImpersonationConfig{UserName: "u"}},
		"as group":      {Host: "https://a", Impersonate: rest.ImpersonationConfig{UserName: "u", Groups: []string{"g"}}},
		"authority":     {Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("b")}},
		"file":          {Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAFile: file}},
		"certificate":   {Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CertData: []byte("c")}},
		"insecure":      {Host: "https://a", TLSClientConfig: rest.TLSClientConfig{Insecure: true}},
		"server name":   {Host: "https://a", TLSClientConfig: rest.TLSClientConfig{ServerName: "b"}},
		"exec":          {Host: "https://a", ExecProvider: &clientcmdapi.ExecConfig{Command: "get-token"}},
		"other exec":    {Host: "https://a", ExecProvider: &clientcmdapi.ExecConfig{Command: "get-token", Args: []string{"b"}}},
		"auth provider": {Host: "https://a", AuthProvider: &clientcmdapi.AuthProviderConfig{Name: "p"}},
	} {
		id, err := Identity(config)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[id]; ok {
			t.Errorf("%s and %s have one identity", name, other)
		}
		seen[id] = name
	}
	one, _ := Identity(&rest.Config{Host: "https://a", BearerToken: "x", BearerTokenFile: "/x"})
	renewed, _ := Identity(&rest.Config{Host: "https://a", BearerToken: "y", BearerTokenFile: "/x"})
	same, _ := Identity(&rest.Config{Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("a")}})
	if one != renewed || seen[same] != "file" {
		t.Error("a token that is renewed, or a file that is read, makes another identity")
	}
}

// TestIdentityOfPrograms: the environment of a program that gets tokens tells whose they are; what tells where it runs, and
// the environment where there is no such program, does not.
func TestIdentityOfPrograms(t *testing.T) {
	plain := &rest.Config{Host: "https://a"}
	exec := &rest.Config{Host: "https://a", ExecProvider: &clientcmdapi.ExecConfig{Command: "get-token"}}
	identify := func(config *rest.Config, name, value string) string {
		t.Helper()
		t.Setenv(name, value)
		id, err := Identity(config)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	if identify(exec, "AWS_PROFILE", "reader") == identify(exec, "AWS_PROFILE", "admin") {
		t.Error("tokens of two profiles have one identity")
	}
	if identify(plain, "AWS_PROFILE", "reader") != identify(plain, "AWS_PROFILE", "admin") {
		t.Error("a profile that no program reads makes another identity")
	}
	for _, name := range []string{"PWD", "TERM_PROGRAM", "SSH_TTY", "LC_ALL"} {
		if identify(exec, name, "a") != identify(exec, name, "b") {
			t.Errorf("%s makes another identity", name)
		}
	}
	informed := &rest.Config{Host: "https://a", ExecProvider: &clientcmdapi.ExecConfig{
		Command: "get-token", ProvideClusterInfo: true, Config: &runtime.Unknown{Raw: []byte(`{"audience":"b"}`)},
	}}
	if identify(exec, "PWD", "a") == identify(informed, "PWD", "a") {
		t.Error("what a program is told of the cluster makes no other identity")
	}
}

// TestPlacesOfOthersAreNotTrusted: what others could have put there does not answer, and nothing is served there.
func TestPlacesOfOthersAreNotTrusted(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, p Place) error{
		"folder is open": func(_ *testing.T, p Place) error { return os.Chmod(p.Folder, 0o755) },
		"parent is open": func(_ *testing.T, p Place) error { return os.Chmod(filepath.Dir(p.Folder), 0o777) },
		"socket is open": func(_ *testing.T, p Place) error { return os.Chmod(p.Socket(), 0o666) },
		"socket is a file": func(_ *testing.T, p Place) error {
			return errors.Join(os.Remove(p.Socket()), os.WriteFile(p.Socket(), nil, 0o600))
		},
		"folder is a link": func(t *testing.T, p Place) error {
			other := filepath.Join(t.TempDir(), "other")
			return errors.Join(os.Rename(p.Folder, other), os.Symlink(other, p.Folder))
		},
	} {
		t.Run(name, func(t *testing.T) {
			shortDir(t)
			config := &rest.Config{Host: "https://a"}
			id, err := Identity(config)
			if err != nil {
				t.Fatal(err)
			}
			p := PlaceOf(id)
			if err := p.make(); err != nil {
				t.Fatal(err)
			}
			listener, err := net.Listen("unix", p.Socket())
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			if err := errors.Join(os.Chmod(p.Socket(), 0o600), p.check()); err != nil {
				t.Fatal(err)
			}
			if err := spoil(t, p); err != nil {
				t.Fatal(err)
			}
			if _, err := NewClient(config); err == nil || errors.Is(err, ErrNone) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestSocketThatWasLeftBehind: a server that was killed keeps nobody from asking the cluster, or from serving again.
func TestSocketThatWasLeftBehind(t *testing.T) {
	shortDir(t)
	config := &rest.Config{Host: "https://a"}
	id, _ := Identity(config)
	p := PlaceOf(id)
	if _, err := NewClient(config); !errors.Is(err, ErrNone) {
		t.Errorf("without a server the error is %v", err)
	}
	if err := p.make(); err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.Socket()})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(p.Socket(), 0o600), listener.Close()); err != nil {
		t.Fatal(err)
	}
	client, err := NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Info(t.Context()); !errors.Is(err, ErrNone) {
		t.Errorf("a socket without a server: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	listening, done := make(chan struct{}), make(chan error, 1)
	go func() { // ended by Stop
		done <- Serve(ctx, Options{Place: p, Info: func() Info { return Info{Identity: id} }, Handler: http.NotFoundHandler()}, func() { close(listening) })
	}()
	defer cancel()
	<-listening
	if info, err := client.Info(t.Context()); err != nil || info.Identity != id {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := client.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
