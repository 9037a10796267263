package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const loopback = "127.0.0.1"

// controlPlane is a running etcd and kube-apiserver, supervised by this process. It is not safe for
// concurrent use.
type controlPlane struct {
	dir directory
	// ephemeral deletes the directory when the sandbox stops or this process dies.
	ephemeral       bool
	lock            *fileLock
	watchdog        *watchdog
	ports           []*portLease
	tokens          tokens
	etcd, apiServer *component
	etcdURL         string
	admin           kubernetes.Interface // without verification of the certificate
}

// startControlPlane starts etcd and kube-apiserver and returns when both are ready. If it returns an error,
// for example because ctx has ended, no process is left running.
func startControlPlane(ctx context.Context, o startOptions) (*controlPlane, error) {
	cp := &controlPlane{ephemeral: o.dir == ""}
	path, err := filepath.Abs(o.dir)
	if cp.ephemeral {
		path, err = os.MkdirTemp("", "crdcache-sandbox-")
	}
	if err != nil {
		return nil, err
	}
	cp.dir = directory(path)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	cp.lock, err = lockFile(cp.dir.lockPath())
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("%s: directory is in use by the sandbox of process %d", path,
			readPID(cp.dir.lockPath()))
	}
	if err != nil {
		return nil, err
	}
	if err := cp.start(ctx, o); err != nil {
		cp.stop()
		return nil, err
	}
	return cp, nil
}

func (cp *controlPlane) start(ctx context.Context, o startOptions) (err error) {
	for _, name := range []string{etcdName, apiServerName} { // left behind when the machine crashed
		_ = os.Remove(cp.dir.pidPath(name))
	}
	if cp.watchdog, err = startWatchdog(cp.dir, cp.lock, cp.ephemeral); err != nil {
		return err
	}
	if cp.tokens, err = writeTokens(cp.dir); err != nil {
		return err
	}
	if err := cp.newEtcd(o.binaries); err != nil {
		return err
	}
	server, err := cp.newAPIServer(o.binaries, o.apiServerArgs)
	if err != nil {
		return err
	}
	if err := cp.etcd.start(ctx); err != nil {
		return err
	}
	if err := cp.startAPIServer(ctx); err != nil {
		return err
	}
	if err := cp.tokens.writeKubeconfig(cp.dir.kubeconfigPath(), server); err != nil {
		return err
	}
	return writeFile(cp.dir.etcdURLPath(), []byte(cp.etcdURL))
}

// leaseNewPort reserves a port until the sandbox stops.
func (cp *controlPlane) leaseNewPort() (string, error) {
	lease, err := leasePort()
	if err != nil {
		return "", err
	}
	cp.ports = append(cp.ports, lease)
	return strconv.Itoa(lease.port), nil
}

func (cp *controlPlane) newEtcd(binaries string) error {
	port, err := cp.leaseNewPort()
	if err != nil {
		return err
	}
	launcher, err := writeLauncher(cp.dir, etcdName, binaries, "etcd")
	if err != nil {
		return err
	}
	log, err := openLog(cp.dir, etcdName)
	if err != nil {
		return err
	}
	data := cp.dir.path("etcd")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	server := &envtest.Etcd{
		Path: launcher, DataDir: data, StartTimeout: readyTimeout, StopTimeout: stopGracePeriod, Out: log,
		Err: log,
		URL: &url.URL{Scheme: "http", Host: loopback + ":" + port},
	}
	cp.etcdURL = server.URL.String()
	// Without fsync, data survives a killed process but not a crash of the machine. This is much faster
	// and sufficient for a sandbox.
	server.Configure().Set("unsafe-no-fsync", "true").
		Set("quota-backend-bytes", "8589934592").Set("log-level", "info")
	cp.etcd = &component{name: etcdName, dir: cp.dir, server: server, log: log}
	return nil
}

// newAPIServer creates the API server. The user's flags override all other flags.
func (cp *controlPlane) newAPIServer(binaries string, flags []string) (*envtest.APIServer, error) {
	port, err := cp.leaseNewPort()
	if err != nil {
		return nil, err
	}
	launcher, err := writeLauncher(cp.dir, apiServerName, binaries, "kube-apiserver")
	if err != nil {
		return nil, err
	}
	log, err := openLog(cp.dir, apiServerName)
	if err != nil {
		return nil, err
	}
	// envtest creates certificates that are valid for a week.
	certificates := cp.dir.path("pki")
	if err := errors.Join(os.RemoveAll(certificates), os.MkdirAll(certificates, 0o700)); err != nil {
		return nil, err
	}
	etcd, err := url.Parse(cp.etcdURL)
	if err != nil {
		return nil, err
	}
	server := &envtest.APIServer{
		Path: launcher, CertDir: certificates, EtcdURL: etcd, StartTimeout: readyTimeout,
		StopTimeout: stopGracePeriod, Out: log, Err: log,
	}
	server.SecureServing.Address, server.SecureServing.Port = loopback, port
	server.SecureServing.Authn = tokensOnly{}
	appendFlags(server.Configure().
		Set("token-auth-file", cp.dir.path("tokens.csv")).
		Set("advertise-address", loopback).
		Set("endpoint-reconciler-type", "none").
		Set("service-account-issuer", "https://kubernetes.default.svc"), flags)
	cp.apiServer = &component{name: apiServerName, dir: cp.dir, server: server, log: log}
	cp.admin, err = kubernetes.NewForConfig(&rest.Config{
		Host: "https://" + loopback + ":" + port, BearerToken: cp.tokens.admin, QPS: -1, Timeout: 2 * time.Second,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	})
	return server, err
}

func (cp *controlPlane) startAPIServer(ctx context.Context) error {
	if err := cp.apiServer.start(ctx); err != nil {
		return err
	}
	return cp.awaitAPIServer(ctx)
}

// awaitAPIServer waits until the server is ready and has the default namespace. One of its controllers
// creates this namespace shortly after the server is ready.
func (cp *controlPlane) awaitAPIServer(ctx context.Context) error {
	var lastErr error
	err := wait.PollUntilContextTimeout(ctx, 40*time.Millisecond, readyTimeout, true,
		func(ctx context.Context) (bool, error) {
			lastErr = cp.admin.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
			if lastErr == nil {
				_, lastErr = cp.admin.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault,
					metav1.GetOptions{})
			}
			if lastErr != nil && !cp.apiServer.isAlive() {
				return false, errors.New("the process has ended")
			}
			return lastErr == nil, nil
		})
	if err != nil {
		return fmt.Errorf("the API server is not ready: %w", errors.Join(err, lastErr))
	}
	return nil
}

// restart restarts a component on the same port, or starts a dead component. It returns when the component is
// ready. After a restart of etcd, it also waits for a running API server.
func (cp *controlPlane) restart(ctx context.Context, name string) error {
	if name == apiServerName {
		if !cp.etcd.isAlive() {
			return errors.New("etcd is not running: restart it first, the API server cannot start without it")
		}
		cp.apiServer.stop()
		return cp.startAPIServer(ctx)
	}
	cp.etcd.stop()
	if err := cp.etcd.start(ctx); err != nil || !cp.apiServer.isAlive() {
		return err
	}
	return cp.awaitAPIServer(ctx)
}

// apiServerCompactKey is the key in which API servers publish etcd's compacted revision. They no longer serve
// older revisions from their caches.
const apiServerCompactKey = "compact_rev_key"

// compact discards etcd's history before the current revision. The API server does this every five minutes.
//
// Then lists at an older exact revision and older continue tokens expire (410 Gone). Watches from an older
// revision work while the API server's watch cache has the revision: restart the API server to expire them,
// too.
func (cp *controlPlane) compact(ctx context.Context) error {
	client, err := dialEtcd(cp.etcdURL)
	if err != nil {
		return err
	}
	defer client.Close()
	resp, err := client.Get(ctx, apiServerCompactKey, clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("read etcd's revision: %w", err)
	}
	revision := resp.Header.Revision
	if _, err := client.Put(ctx, apiServerCompactKey, strconv.FormatInt(revision, 10)); err != nil {
		return err
	}
	_, err = client.Compact(ctx, revision, clientv3.WithCompactPhysical())
	return err
}

func dialEtcd(url string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{url}, DialTimeout: 5 * time.Second,
		Logger: zap.NewNop()})
}

// stop stops both components and releases the directory. It returns when both processes have ended.
func (cp *controlPlane) stop() {
	if cp.apiServer != nil {
		// All state is in etcd, so a graceful shutdown is unnecessary.
		cp.apiServer.kill()
		cp.apiServer.log.Close()
	}
	if cp.etcd != nil {
		if cp.ephemeral {
			cp.etcd.signalKill()
		}
		cp.etcd.stop()
		cp.etcd.log.Close()
	}
	for _, lease := range cp.ports {
		lease.release()
	}
	_ = os.Remove(cp.dir.etcdURLPath())
	if cp.ephemeral {
		_ = os.RemoveAll(string(cp.dir))
	}
	if cp.watchdog != nil {
		cp.watchdog.dismiss()
	}
	// Last, because a free lock means that the sandbox has ended.
	cp.lock.release()
}
