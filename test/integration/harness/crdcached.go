package harness

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// CrdcachedServer is a running crdcached.
type CrdcachedServer struct {
	// URL is the address of the server.
	URL string
	// CA signed the server's certificate, in PEM.
	CA []byte

	command *exec.Cmd
	ended   chan struct{} // closed after err is set
	err     error
}

// StartCrdcached runs crdcached with the rights that docs/crdcached.md names, and returns when it is ready.
// config is the text of the config file without apiVersion and kind. The server stops when the test ends.
func StartCrdcached(t testing.TB, config string, flags ...string) *CrdcachedServer {
	t.Helper()
	return StartCrdcachedIn(t, CrdcachedKubeconfig(t), config, flags...)
}

func StartCrdcachedIn(t testing.TB, kubeconfig, config string, flags ...string) *CrdcachedServer {
	t.Helper()
	s := LaunchCrdcached(t, kubeconfig, config, flags...)
	s.AwaitReady(t)
	return s
}

// LaunchCrdcached is StartCrdcachedIn, but returns when the server listens.
func LaunchCrdcached(t testing.TB, kubeconfig, config string, flags ...string) *CrdcachedServer {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := "apiVersion: crdcache.dev/v1beta1\nkind: ServerConfig\n" + config
	must(t, os.WriteFile(file, []byte(text), 0o600))
	flags = append([]string{"--kubeconfig", kubeconfig, "--config", file, "--bind-address=127.0.0.1",
		"--secure-port=0"}, flags...)
	s := &CrdcachedServer{command: exec.Command(Crdcached(t), flags...), ended: make(chan struct{})}
	stderr, err := s.command.StderrPipe()
	must(t, err)
	must(t, s.command.Start())
	address := make(chan string, 1)
	go func() { // ended by the end of the process
		defer close(s.ended)
		readAddress(stderr, address)
		s.err = s.command.Wait()
	}()
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("crdcached ends with %v", err)
		}
	})
	at, ok := <-address
	if !ok {
		t.Fatal("crdcached ends without serving")
	}
	s.URL, s.CA = "https://"+at, certificateOf(t, at)
	return s
}

// servingPattern matches the log line with the address of the server.
var servingPattern = regexp.MustCompile(`Serving securely on (127\.0\.0\.1:\d+)`)

// readAddress forwards the server's log, and sends its address.
func readAddress(output io.Reader, address chan<- string) {
	defer close(address)
	lines, found := bufio.NewScanner(output), false
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if match := servingPattern.FindStringSubmatch(lines.Text()); match != nil && !found {
			address <- match[1]
			found = true
		}
		if os.Getenv("CRDCACHED_LOG") != "" {
			fmt.Fprintln(os.Stderr, lines.Text())
		}
	}
	_, _ = io.Copy(io.Discard, output) // after a line that is too long
}

// PID returns the process ID of the server.
func (s *CrdcachedServer) PID() int { return s.command.Process.Pid }

func (s *CrdcachedServer) Kill() {
	_ = s.command.Process.Kill() // fails if the process has ended
	<-s.ended
}

// Stop terminates the server as Kubernetes does, and returns an error unless it exits with success. It can be
// called repeatedly, and after Kill.
func (s *CrdcachedServer) Stop() error {
	_ = s.command.Process.Signal(syscall.SIGTERM) // fails if the process has ended
	<-s.ended
	var exit *exec.ExitError
	if errors.As(s.err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled() {
		return nil // Kill ended it
	}
	return s.err
}

// AwaitReady waits until every type has synced or is known to be unreadable.
func (s *CrdcachedServer) AwaitReady(t testing.TB) {
	t.Helper()
	client, err := rest.HTTPClientFor(s.As(&rest.Config{}))
	must(t, err)
	Eventually(t, func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := client.Do(r)
		if err != nil {
			return err
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz is %s", response.Status)
		}
		return nil
	})
}

// As returns a configuration for the server with the credentials of another configuration.
func (s *CrdcachedServer) As(user *rest.Config) *rest.Config {
	config := rest.CopyConfig(user)
	config.Host, config.QPS = s.URL, -1
	config.TLSClientConfig.CAData, config.TLSClientConfig.CAFile, config.TLSClientConfig.Insecure = s.CA,
		"", false
	config.WarningHandler = rest.NoWarnings{}
	return config
}

// certificateOf returns the server's certificate without verification.
func certificateOf(t testing.TB, address string) (authorities []byte) {
	t.Helper()
	Eventually(t, func(ctx context.Context) error {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
		c, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		defer c.Close()
		authorities = nil
		for _, certificate := range c.(*tls.Conn).ConnectionState().PeerCertificates {
			authorities = append(authorities,
				pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})...)
		}
		return nil
	})
	return authorities
}

// CrdcachedKubeconfig returns the path of a file with which crdcached reads the cluster. Its service account
// has only the rights to cache any type except Secrets, and those of the further rules.
func CrdcachedKubeconfig(t testing.TB, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	account := NewUser(t, "crdcached")
	account.Grant(t, "", append(rules, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"},
		Verbs: []string{"get", "list", "watch"}})...)
	account.bind(t, "", "ClusterRole", "system:auth-delegator")
	account.bind(t, "kube-system", "Role", "extension-apiserver-authentication-reader")
	return WriteKubeconfig(t, account.Config(t))
}

// WriteKubeconfig writes the address, certificate authorities and token of config to a file, and returns its
// path.
func WriteKubeconfig(t testing.TB, config *rest.Config) string {
	t.Helper()
	file := clientcmdapi.NewConfig()
	file.Clusters["sandbox"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthority: config.CAFile,
		CertificateAuthorityData: config.CAData}
	file.AuthInfos["user"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	file.Contexts["context"] = &clientcmdapi.Context{Cluster: "sandbox", AuthInfo: "user"}
	file.CurrentContext = "context"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(*file, path))
	must(t, os.Chmod(path, 0o600))
	return path
}
