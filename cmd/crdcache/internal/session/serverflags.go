package session

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/filesource"
	"github.com/crdcache/crdcache/internal/naming"
)

const defaultTimeout = 2 * time.Minute

// ServerFlags are the flags of every verb that reads from an API server.
type ServerFlags struct {
	kubeconfig    kubeconfigFlags
	contexts      []string
	allContexts   bool
	allNamespaces bool
	timeout       time.Duration
	fromPaths     []string
	files         filesource.Options // of the objects that a verb reads
	quiet         bool
	flagSet       *pflag.FlagSet
}

// Add adds the flags for the server, the timeout and the output to stderr, and their completion.
func (f *ServerFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.fromPaths, "from", nil, "")
	f.AddWithoutFrom(cmd)
}

// AddWithoutFrom works like Add for a verb that names files in another way.
func (f *ServerFlags) AddWithoutFrom(cmd *cobra.Command) {
	set := cmd.Flags()
	f.kubeconfig.add(set)
	f.flagSet = set
	set.BoolVar(&f.quiet, "quiet", false, "")
	set.DurationVar(&f.timeout, "timeout", defaultTimeout, "")
	markShared(set, append([]string{"namespace", "from", "quiet", "timeout"}, clusterFlags...)...)
	f.complete(cmd)
}

// Streams returns the streams of a verb. With --quiet it discards stderr. Main prints errors nevertheless.
func (f *ServerFlags) Streams(streams genericiooptions.IOStreams) genericiooptions.IOStreams {
	if f.quiet {
		streams.ErrOut = io.Discard
	}
	return streams
}

// Target validates the flags and reads the kubeconfig, or the files of --from. It sends no request.
func (f *ServerFlags) Target(ctx context.Context, streams genericiooptions.IOStreams) (*Target, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	if len(f.fromPaths) > 0 {
		return f.FileTarget(ctx, streams, naming.AppendMissing(nil, f.fromPaths...)...)
	}
	t := f.newTarget(streams)
	loader := f.kubeconfig.loader()
	if err := f.connect(t, loader); err != nil {
		return nil, err
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	if f.kubeconfig.overrides.ClusterInfo.Server == "" {
		t.Context = cmp.Or(f.kubeconfig.overrides.CurrentContext, raw.CurrentContext)
		t.noKubeconfig = len(raw.Clusters) == 0
	}
	return t, nil
}

// FileTarget reads files instead of a cluster.
func (f *ServerFlags) FileTarget(ctx context.Context, streams genericiooptions.IOStreams,
	paths ...string) (*Target, error) {
	t := f.newTarget(streams)
	t.Namespace = f.kubeconfig.namespace
	options := f.files
	options.Paths = paths
	return t, t.openFiles(ctx, options)
}

func (f *ServerFlags) newTarget(streams genericiooptions.IOStreams) *Target {
	return &Target{IOStreams: f.Streams(streams), Timeout: f.timeout}
}

// connect sets the server and the namespace of a target.
func (f *ServerFlags) connect(t *Target, loader clientcmd.ClientConfig) (err error) {
	if t.Rest, err = loader.ClientConfig(); err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	// The server's API priority and fairness limits requests. A client-side limit only adds latency.
	t.Rest.QPS = -1
	t.responses.target = t
	t.Rest.Wrap(t.responses.wrap)
	t.Rest.WarningHandler = rest.NewWarningWriter(t.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	if !f.allNamespaces {
		if t.Namespace, _, err = loader.Namespace(); err != nil {
			return fmt.Errorf("read the namespace of the kubeconfig: %w", err)
		}
	}
	return nil
}

// contextsFlags select several clusters.
var contextsFlags = []string{"contexts", "all-contexts"}

// clusterFlags select the cluster and the user.
var clusterFlags = []string{
	"kubeconfig", "context", "cluster", "server", "user", "token", "as", "as-group", "as-uid",
	"as-user-extra", "client-certificate", "client-key",
	"certificate-authority", "insecure-skip-tls-verify", "tls-server-name", "proxy-url",
	"disable-compression", "request-timeout",
}

// RejectSourceFlags returns an error if flags select a server or files.
func (f *ServerFlags) RejectSourceFlags(reason string) error {
	names := slices.Concat([]string{"from", "timeout"}, contextsFlags, clusterFlags)
	if name, ok := naming.Find(names, f.flagSet.Changed); ok {
		return Usagef("--%s has no effect %s", name, reason)
	}
	return nil
}

func (f *ServerFlags) validate() error {
	names := slices.Concat(contextsFlags, clusterFlags)
	if name, ok := naming.Find(names, f.flagSet.Changed); ok && len(f.fromPaths) > 0 {
		return Usagef("--from and --%s cannot be used together: files need no cluster", name)
	}
	if f.flagSet.Changed("contexts") && f.allContexts {
		return Usagef("--contexts and --all-contexts cannot be used together: use one of them")
	}
	names = []string{"context", "cluster", "server"}
	if name, ok := naming.Find(names, f.flagSet.Changed); ok && f.SelectsContexts() {
		return Usagef("--%s cannot be used with --contexts or --all-contexts: each context has its cluster", name)
	}
	if f.allNamespaces && f.kubeconfig.namespace != "" {
		return Usagef("--namespace and --all-namespaces cannot be used together: use one of them")
	}
	if problems := validation.IsDNS1123Label(f.kubeconfig.namespace); f.kubeconfig.namespace != "" &&
		len(problems) > 0 {
		return Usagef("%q cannot be a namespace: %s", f.kubeconfig.namespace, problems[0])
	}
	if err := f.kubeconfig.validate(); err != nil {
		return err
	}
	if f.timeout < 0 {
		return Usagef("--timeout is %v: it must not be negative; 0 waits forever", f.timeout)
	}
	return nil
}

// kubeconfigFlags are kubectl's flags for the server and the user. ConfigFlags of cli-runtime would also link
// k8s.io/api, OpenAPI and kustomize, which are two thirds of the binary.
type kubeconfigFlags struct {
	path      string
	namespace string
	userExtra []string
	overrides clientcmd.ConfigOverrides
}

func (k *kubeconfigFlags) add(set *pflag.FlagSet) {
	k.overrides.ClusterDefaults = clientcmd.ClusterDefaults
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ClusterOverrideFlags.APIServer.ShortName = "s"
	// basic authentication, which API servers no longer support
	names.AuthOverrideFlags.Username.LongName = ""
	names.AuthOverrideFlags.Password.LongName = ""
	names.ContextOverrideFlags.Namespace.LongName = "" // clientcmd's flag also accepts namespace/NAME
	clientcmd.BindOverrideFlags(&k.overrides, set, names)
	set.StringVar(&k.path, clientcmd.RecommendedConfigPathFlag, "",
		"Path to the kubeconfig file to use for CLI requests.")
	set.StringVarP(&k.namespace, clientcmd.FlagNamespace, "n", "", "")
	set.StringArrayVar(&k.userExtra, "as-user-extra", nil, "")
}

func (k *kubeconfigFlags) validate() error {
	for _, extra := range k.userExtra {
		if key, _, ok := strings.Cut(extra, "="); !ok || key == "" {
			return Usagef("--as-user-extra is %q: write key=value", extra)
		}
	}
	if d, err := clientcmd.ParseTimeout(k.overrides.Timeout); err != nil || d < 0 {
		return Usagef("--request-timeout is %q: use a duration like 30s or 2m; 0 waits forever",
			k.overrides.Timeout)
	}
	return nil
}

func (k *kubeconfigFlags) loader() clientcmd.ClientConfig {
	overrides := k.flagOverrides()
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(k.loadingRules(), &overrides)
}

func (k *kubeconfigFlags) loadingRules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.DefaultClientConfig = &clientcmd.DefaultClientConfig
	rules.ExplicitPath = k.path
	return rules
}

// flagOverrides returns the values of the flags, which override the kubeconfig.
func (k *kubeconfigFlags) flagOverrides() clientcmd.ConfigOverrides {
	overrides := k.overrides
	overrides.Context.Namespace = k.namespace
	for _, extra := range k.userExtra {
		key, value, _ := strings.Cut(extra, "=")
		if overrides.AuthInfo.ImpersonateUserExtra == nil {
			overrides.AuthInfo.ImpersonateUserExtra = map[string][]string{}
		}
		overrides.AuthInfo.ImpersonateUserExtra[key] = append(
			overrides.AuthInfo.ImpersonateUserExtra[key], value)
	}
	return overrides
}
