package session

import (
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
)

// kubeconfigFlags are the flags that say which server to use, and as whom. They are kubectl's, bound by clientcmd: the
// ConfigFlags of cli-runtime link every type of k8s.io/api, OpenAPI and kustomize beside them, which makes for most of
// the time of a build and two thirds of the program.
type kubeconfigFlags struct {
	path      string
	namespace string
	userExtra []string
	overrides clientcmd.ConfigOverrides
}

// add adds the flags with kubectl's names and defaults.
func (k *kubeconfigFlags) add(set *pflag.FlagSet) {
	k.overrides.ClusterDefaults = clientcmd.ClusterDefaults
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	names.AuthOverrideFlags.Username.LongName = "" // basic authentication, which servers know no more
	names.AuthOverrideFlags.Password.LongName = ""
	names.ContextOverrideFlags.Namespace.LongName = "" // clientcmd's takes namespace/NAME as well
	clientcmd.BindOverrideFlags(&k.overrides, set, names)
	set.StringVar(&k.path, clientcmd.RecommendedConfigPathFlag, "", "Path to the kubeconfig file to use for CLI requests.")
	set.StringVarP(&k.namespace, clientcmd.FlagNamespace, "n", "", "If present, the namespace scope for this CLI request")
	set.StringArrayVar(&k.userExtra, "as-user-extra", nil,
		"User extras to impersonate for the operation, as key=value; this flag can be repeated to specify multiple values for the same key.")
}

// validate refuses values that cannot be.
func (k *kubeconfigFlags) validate() error {
	for _, extra := range k.userExtra {
		if key, _, ok := strings.Cut(extra, "="); !ok || key == "" {
			return exit.Usagef("--as-user-extra is %q: write key=value", extra)
		}
	}
	if d, err := clientcmd.ParseTimeout(k.overrides.Timeout); err != nil || d < 0 {
		return exit.Usagef("--request-timeout is %q: use a duration like 30s or 2m; 0 waits without end", k.overrides.Timeout)
	}
	return nil
}

// loader reads the kubeconfig that the flags name, with what they say in place of it.
func (k *kubeconfigFlags) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.DefaultClientConfig = &clientcmd.DefaultClientConfig
	rules.ExplicitPath = k.path
	overrides := k.overrides
	overrides.Context.Namespace = k.namespace
	for _, extra := range k.userExtra {
		key, value, _ := strings.Cut(extra, "=")
		if overrides.AuthInfo.ImpersonateUserExtra == nil {
			overrides.AuthInfo.ImpersonateUserExtra = map[string][]string{}
		}
		overrides.AuthInfo.ImpersonateUserExtra[key] = append(overrides.AuthInfo.ImpersonateUserExtra[key], value)
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &overrides)
}

// context names the context that tells which server to use; empty where there is none, or the flags name a server.
func (k *kubeconfigFlags) context(loader clientcmd.ClientConfig) (string, error) {
	if k.overrides.ClusterInfo.Server != "" {
		return "", nil
	}
	if k.overrides.CurrentContext != "" {
		return k.overrides.CurrentContext, nil
	}
	raw, err := loader.RawConfig()
	return raw.CurrentContext, err
}
