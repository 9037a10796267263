package controlplane

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Names in the kubeconfig. A context has the name of its user.
const (
	clusterName      = "sandbox"
	adminUser        = "sandbox-admin"
	unprivilegedUser = "sandbox-unprivileged"
)

// renewal is the age at which a start replaces the certificates. envtest's certificates are valid for a week.
const renewal = 3 * 24 * time.Hour

// credentials has the tokens and the CA of a sandbox.
type credentials struct {
	caPEM             []byte
	adminToken        string
	unprivilegedToken string
}

// loadTokens returns the tokens of a directory. The first call creates them, so kubeconfigs stay valid when a
// sandbox is started again.
func loadTokens(l Layout) (credentials, error) {
	text, err := os.ReadFile(l.tokens())
	if errors.Is(err, os.ErrNotExist) {
		text = fmt.Appendf(nil, "%s,%s,1,system:masters\n%s,%s,2\n", rand.Text(), adminUser, rand.Text(),
			unprivilegedUser)
		err = writeFile(l.tokens(), text)
	}
	if err != nil {
		return credentials{}, err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 2 {
		return credentials{}, fmt.Errorf("%s: want 2 lines, found %d", l.tokens(), len(lines))
	}
	admin, _, _ := strings.Cut(lines[0], ",")
	unprivileged, _, _ := strings.Cut(lines[1], ",")
	return credentials{adminToken: admin, unprivilegedToken: unprivileged}, nil
}

// loadCA returns the authority that signed the API server's certificate in an earlier run. If there is none,
// or the certificate expires soon, it empties the folder and returns nil; envtest then creates new
// certificates.
func loadCA(l Layout) ([]byte, error) {
	info, err := os.Stat(l.caCert())
	if err == nil && time.Since(info.ModTime()) < renewal {
		return os.ReadFile(l.caCert())
	}
	return nil, errors.Join(os.RemoveAll(l.pki()), os.MkdirAll(l.pki(), 0o700))
}

// tokensOnly is an envtest.Authn without client certificates. A server ignores the token of a request with a
// certificate, and tests choose the authority for client certificates themselves.
type tokensOnly struct{}

var _ envtest.Authn = tokensOnly{}

// Configure implements envtest.Authn.
func (tokensOnly) Configure(string, *envtest.Arguments) error { return nil }

// Start implements envtest.Authn.
func (tokensOnly) Start() error { return nil }

// AddUser implements envtest.Authn.
func (tokensOnly) AddUser(user envtest.User, _ *rest.Config) (*rest.Config, error) {
	return nil, fmt.Errorf("%s has no token", user.Name)
}

// Stop implements envtest.Authn.
func (tokensOnly) Stop() error { return nil }

// writeKubeconfig writes both users. The current context is the admin's.
func writeKubeconfig(path, serverURL string, creds credentials) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[clusterName] = &clientcmdapi.Cluster{Server: serverURL,
		CertificateAuthorityData: creds.caPEM}
	for user, token := range map[string]string{
		adminUser:        creds.adminToken,
		unprivilegedUser: creds.unprivilegedToken,
	} {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
		config.Contexts[user] = &clientcmdapi.Context{Cluster: clusterName, AuthInfo: user}
	}
	config.CurrentContext = adminUser
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return writeFile(path, data)
}

// writeFile replaces a file atomically.
func writeFile(path string, data []byte) error {
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
