package controlplane

import (
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Names in the kubeconfig. A context is named like its user.
const (
	clusterName      = "sandbox"
	adminUser        = "sandbox-admin"
	unprivilegedUser = "sandbox-unprivileged"
)

// writeKubeconfig writes both users; the admin's context is the current one.
func writeKubeconfig(path, serverURL string, creds credentials) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[clusterName] = &clientcmdapi.Cluster{
		Server:                   serverURL,
		CertificateAuthorityData: creds.caPEM,
	}
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
