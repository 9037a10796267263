package harness

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// envtestPlane is a control plane of the binaries in KUBEBUILDER_ASSETS, run by controller-runtime's
// envtest, which knows the flags of many versions.
type envtestPlane struct {
	etcd      *envtest.Etcd
	apiServer *envtest.APIServer
	config    string
	tokens    map[string]string // by context
	dir       string
	watchdog  io.Closer
}

// stopTimeout is how long a component has after SIGTERM; then it is killed. All that matters is in etcd's
// files, and tests want it dead.
const stopTimeout = time.Millisecond

func startEnvtest(ctx context.Context, assets, dir string, apiServerArgs []string) (*envtestPlane, error) {
	paths := map[string]string{}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		path, err := recordPID(dir, name, filepath.Join(assets, name))
		if err != nil {
			return nil, err
		}
		paths[name] = path
	}
	watchdog, err := startWatchdog(dir)
	if err != nil {
		return nil, err
	}
	p := &envtestPlane{
		dir: dir, watchdog: watchdog,
		etcd: &envtest.Etcd{
			Path: paths["etcd"], DataDir: filepath.Join(dir, "etcd"),
			StartTimeout: patience, StopTimeout: stopTimeout,
		},
		apiServer: &envtest.APIServer{
			Path: paths["kube-apiserver"], CertDir: filepath.Join(dir, "apiserver"),
			StartTimeout: patience, StopTimeout: stopTimeout,
		},
		config: filepath.Join(dir, "kubeconfig"),
		tokens: map[string]string{AdminContext: rand.Text(), UnprivilegedContext: rand.Text()},
	}
	for _, d := range []string{p.etcd.DataDir, p.apiServer.CertDir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, errors.Join(err, p.stop())
		}
	}
	tokens := filepath.Join(dir, "tokens.csv")
	if err := p.writeTokens(tokens); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	p.apiServer.SecureServing.Authn = tokensAlone{}
	p.apiServer.Configure().Append("token-auth-file", tokens)
	for _, arg := range apiServerArgs {
		name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		p.apiServer.Configure().Append(name, value)
	}
	if err := p.etcd.Start(); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	p.apiServer.EtcdURL = p.etcd.URL
	if err := errors.Join(p.startAPIServer(ctx), p.writeKubeconfig()); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

func (p *envtestPlane) kubeconfig() string { return p.config }

// startAPIServer starts the API server and waits until it is ready, which is more than the health that
// envtest waits for.
func (p *envtestPlane) startAPIServer(ctx context.Context) error {
	if err := p.apiServer.Start(); err != nil {
		return err
	}
	return p.awaitReady(ctx)
}

func (p *envtestPlane) awaitReady(ctx context.Context) error {
	client, err := rest.UnversionedRESTClientFor(unversioned(&rest.Config{
		Host: p.host(), BearerToken: p.tokens[AdminContext], TLSClientConfig: rest.TLSClientConfig{CAData: p.apiServer.SecureServing.CA},
	}))
	if err != nil {
		return err
	}
	return eventually(ctx, func(ctx context.Context) error {
		return client.Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

func (p *envtestPlane) killAPIServer(ctx context.Context) error {
	return p.kill(ctx, "kube-apiserver", p.apiServer.Stop, net.JoinHostPort(p.apiServer.SecureServing.Address, p.apiServer.SecureServing.Port))
}

func (p *envtestPlane) restartAPIServer(ctx context.Context) error {
	if err := p.killAPIServer(ctx); err != nil {
		return err
	}
	return p.startAPIServer(ctx)
}

func (p *envtestPlane) apiServerPID(context.Context) (int, error) {
	return recordedPID(p.dir, "kube-apiserver")
}

func (p *envtestPlane) killEtcd(ctx context.Context) error {
	return p.kill(ctx, "etcd", p.etcd.Stop, p.etcd.URL.Host)
}

func (p *envtestPlane) restartEtcd(ctx context.Context) error {
	if err := p.killEtcd(ctx); err != nil {
		return err
	}
	if err := p.etcd.Start(); err != nil {
		return err
	}
	if !listens(ctx, net.JoinHostPort(p.apiServer.SecureServing.Address, p.apiServer.SecureServing.Port)) {
		return nil
	}
	return p.awaitReady(ctx)
}

func (p *envtestPlane) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var errs []error
	if p.apiServer.SecureServing.Port != "" {
		errs = append(errs, p.killAPIServer(ctx))
	}
	if p.etcd.URL != nil {
		errs = append(errs, p.kill(ctx, "etcd", p.etcd.Stop, p.etcd.URL.Host))
	}
	errs = append(errs, p.watchdog.Close())
	return errors.Join(errs...)
}

// kill ends a component and waits until its address refuses connections. The error of stop is of no
// interest: it mostly says that the component had to be killed.
func (p *envtestPlane) kill(ctx context.Context, name string, stop func() error, address string) error {
	stopped := stop()
	err := eventually(ctx, func(ctx context.Context) error {
		if listens(ctx, address) {
			return fmt.Errorf("%s still listens", address)
		}
		return nil
	})
	if err != nil {
		return errors.Join(stopped, err)
	}
	// There is none where it was killed before, or did not start.
	if err := forgetPID(p.dir, name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func listens(ctx context.Context, address string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func (p *envtestPlane) host() string {
	return "https://" + net.JoinHostPort(p.apiServer.SecureServing.Address, p.apiServer.SecureServing.Port)
}

// tokensAlone has envtest give nobody a client certificate, with which a server does not look at the token of a request, be it
// good or bad, and leaves it to tests which authority the server believes.
type tokensAlone struct{}

var _ envtest.Authn = tokensAlone{}

// Configure implements envtest.Authn.
func (tokensAlone) Configure(string, *envtest.Arguments) error { return nil }

// Start implements envtest.Authn.
func (tokensAlone) Start() error { return nil }

// AddUser implements envtest.Authn.
func (tokensAlone) AddUser(user envtest.User, _ *rest.Config) (*rest.Config, error) {
	return nil, fmt.Errorf("%s is not in the file of tokens", user.Name)
}

// Stop implements envtest.Authn.
func (tokensAlone) Stop() error { return nil }

// writeTokens writes the file by which the API server knows both users.
func (p *envtestPlane) writeTokens(path string) error {
	lines := fmt.Sprintf("%s,%s,1,system:masters\n%s,%s,2\n",
		p.tokens[AdminContext], AdminContext, p.tokens[UnprivilegedContext], UnprivilegedContext)
	return os.WriteFile(path, []byte(lines), 0o600)
}

// writeKubeconfig writes both users' contexts, named as the sandbox names its.
func (p *envtestPlane) writeKubeconfig() error {
	file := clientcmdapi.NewConfig()
	file.Clusters["envtest"] = &clientcmdapi.Cluster{Server: p.host(), CertificateAuthorityData: p.apiServer.SecureServing.CA}
	for name, token := range p.tokens {
		file.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
		file.Contexts[name] = &clientcmdapi.Context{Cluster: "envtest", AuthInfo: name}
	}
	file.CurrentContext = AdminContext
	return clientcmd.WriteToFile(*file, p.config)
}

// compactKey is where API servers tell each other how far etcd's history is compacted; they stop serving
// older revisions from their caches.
const compactKey = "compact_rev_key"

// compact speaks to etcd's JSON gateway, so that no etcd client is needed.
func (p *envtestPlane) etcdData() string { return p.etcd.DataDir }

func (p *envtestPlane) compact(ctx context.Context) error {
	key := base64.StdEncoding.EncodeToString([]byte(compactKey))
	var answer struct {
		Header struct{ Revision string }
	}
	if err := p.etcdCall(ctx, "range", map[string]any{"key": key, "count_only": true}, &answer); err != nil {
		return err
	}
	value := base64.StdEncoding.EncodeToString([]byte(answer.Header.Revision))
	if err := p.etcdCall(ctx, "put", map[string]any{"key": key, "value": value}, &struct{}{}); err != nil {
		return err
	}
	revision, err := strconv.ParseInt(answer.Header.Revision, 10, 64)
	if err != nil {
		return err
	}
	return p.etcdCall(ctx, "compaction", map[string]any{"revision": revision, "physical": true}, &struct{}{})
}

func (p *envtestPlane) etcdCall(ctx context.Context, method string, request map[string]any, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	target := (&url.URL{Scheme: p.etcd.URL.Scheme, Host: p.etcd.URL.Host, Path: "/v3/kv/" + method}).String()
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(post)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd %s: %s: %s", method, response.Status, text)
	}
	return json.Unmarshal(text, answer)
}
