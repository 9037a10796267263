package harness

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
}

// stopTimeout is how long a component has after SIGTERM; then it is killed. All that matters is in etcd's
// files, and tests want it dead.
const stopTimeout = time.Millisecond

func startEnvtest(ctx context.Context, assets, dir string, apiServerArgs []string) (*envtestPlane, error) {
	p := &envtestPlane{
		etcd: &envtest.Etcd{
			Path: filepath.Join(assets, "etcd"), DataDir: filepath.Join(dir, "etcd"),
			StartTimeout: patience, StopTimeout: stopTimeout,
		},
		apiServer: &envtest.APIServer{
			Path: filepath.Join(assets, "kube-apiserver"), CertDir: filepath.Join(dir, "apiserver"),
			StartTimeout: patience, StopTimeout: stopTimeout,
		},
		config: filepath.Join(dir, "kubeconfig"),
	}
	for _, d := range []string{p.etcd.DataDir, p.apiServer.CertDir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
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
	config, err := p.user(AdminContext, "system:masters")
	if err != nil {
		return err
	}
	client, err := rest.UnversionedRESTClientFor(unversioned(config))
	if err != nil {
		return err
	}
	return eventually(ctx, func(ctx context.Context) error {
		return client.Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

func (p *envtestPlane) killAPIServer(ctx context.Context) error {
	return kill(ctx, p.apiServer.Stop, net.JoinHostPort(p.apiServer.SecureServing.Address, p.apiServer.SecureServing.Port))
}

func (p *envtestPlane) restartAPIServer(ctx context.Context) error {
	if err := p.killAPIServer(ctx); err != nil {
		return err
	}
	return p.startAPIServer(ctx)
}

func (p *envtestPlane) restartEtcd(ctx context.Context) error {
	if err := kill(ctx, p.etcd.Stop, p.etcd.URL.Host); err != nil {
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
		errs = append(errs, kill(ctx, p.etcd.Stop, p.etcd.URL.Host))
	}
	return errors.Join(errs...)
}

// kill ends a component and waits until its address refuses connections. The error of stop is of no
// interest: it mostly says that the component had to be killed.
func kill(ctx context.Context, stop func() error, address string) error {
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

// user returns the configuration of a user whom the API server knows by a client certificate.
func (p *envtestPlane) user(name string, groups ...string) (*rest.Config, error) {
	config, err := p.apiServer.SecureServing.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{})
	if err != nil {
		return nil, err
	}
	config.Host = "https://" + net.JoinHostPort(p.apiServer.SecureServing.Address, p.apiServer.SecureServing.Port)
	config.CAData = p.apiServer.SecureServing.CA
	return config, nil
}

// writeKubeconfig writes both users' contexts, named as the sandbox names its.
func (p *envtestPlane) writeKubeconfig() error {
	file := clientcmdapi.NewConfig()
	for name, groups := range map[string][]string{AdminContext: {"system:masters"}, UnprivilegedContext: nil} {
		config, err := p.user(name, groups...)
		if err != nil {
			return err
		}
		file.Clusters["envtest"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
		file.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
		file.Contexts[name] = &clientcmdapi.Context{Cluster: "envtest", AuthInfo: name}
	}
	file.CurrentContext = AdminContext
	return clientcmd.WriteToFile(*file, p.config)
}

// compactKey is where API servers tell each other how far etcd's history is compacted; they stop serving
// older revisions from their caches.
const compactKey = "compact_rev_key"

// compact speaks to etcd's JSON gateway, so that no etcd client is needed.
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
