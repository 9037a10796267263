package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
)

// Identity returns a hash for the cluster and the user of a config: two configs that could be answered differently have different
// ones. Files count with their content, but for token files, because tokens are renewed. The account of an exec program is that of
// the credentials that it returns; Identity may run the program and ask the API server. It is safe for concurrent use.
func Identity(ctx context.Context, config *rest.Config) (string, error) {
	said := struct {
		Host, APIPath, Username, Password, Token, TokenFile string
		Impersonate                                         rest.ImpersonationConfig
		ServerName                                          string
		Insecure                                            bool
		Files                                               []string
		Exec, AuthProvider                                  any
		Proxy                                               string
	}{
		Host: config.Host, APIPath: config.APIPath, Username: config.Username, Password: config.Password,
		Token: config.BearerToken, TokenFile: config.BearerTokenFile, Impersonate: config.Impersonate,
		ServerName: config.ServerName, Insecure: config.Insecure, AuthProvider: config.AuthProvider,
	}
	if config.BearerTokenFile != "" {
		said.Token = "" // which is what the file had when the config was read
	}
	if config.ExecProvider != nil {
		account, err := accountOf(ctx, config)
		if err != nil {
			return "", err
		}
		said.Exec = account
	}
	if config.Proxy != nil {
		proxy, err := config.Proxy(nil)
		if err == nil && proxy != nil {
			said.Proxy = proxy.String()
		}
	}
	for _, f := range []struct {
		data []byte
		path string
	}{{config.CAData, config.CAFile}, {config.CertData, config.CertFile}, {config.KeyData, config.KeyFile}} {
		data := f.data
		if len(data) == 0 && f.path != "" {
			var err error
			if data, err = os.ReadFile(f.path); err != nil {
				return "", err
			}
		}
		said.Files = append(said.Files, fmt.Sprintf("%x", sha256.Sum256(data)))
	}
	text, err := json.Marshal(said)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}
