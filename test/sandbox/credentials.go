package main

import (
	"crypto/rand"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Users in the kubeconfig. A context has the name of its user.
const (
	adminUser        = "sandbox-admin"
	unprivilegedUser = "sandbox-unprivileged"
)

// tokens are the credentials of a sandbox's users.
type tokens struct{ admin, unprivileged string }

// writeTokens creates tokens and writes the file that the API server reads.
func writeTokens(dir directory) (tokens, error) {
	t := tokens{admin: rand.Text(), unprivileged: rand.Text()}
	return t, writeFile(dir.path("tokens.csv"), fmt.Appendf(nil, "%s,%s,1,system:masters\n%s,%s,2\n",
		t.admin, adminUser, t.unprivileged, unprivilegedUser))
}

// writeKubeconfig writes both users. The current context is the admin's.
func (t tokens) writeKubeconfig(path string, server *envtest.APIServer) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["sandbox"] = &clientcmdapi.Cluster{
		Server:                   server.SecureServing.URL("https", "").String(),
		CertificateAuthorityData: server.SecureServing.CA,
	}
	for user, token := range map[string]string{adminUser: t.admin, unprivilegedUser: t.unprivileged} {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
		config.Contexts[user] = &clientcmdapi.Context{Cluster: "sandbox", AuthInfo: user}
	}
	config.CurrentContext = adminUser
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return writeFile(path, data)
}

// tokensOnly is an envtest.Authn without client certificates. They would hinder tests: a server ignores the
// token of a request with a certificate, and a test can use its own client CA.
type tokensOnly struct{}

var _ envtest.Authn = tokensOnly{}

func (tokensOnly) Configure(string, *envtest.Arguments) error { return nil }

func (tokensOnly) Start() error { return nil }

func (tokensOnly) AddUser(user envtest.User, _ *rest.Config) (*rest.Config, error) {
	return nil, fmt.Errorf("%s has no token", user.Name)
}

func (tokensOnly) Stop() error { return nil }
