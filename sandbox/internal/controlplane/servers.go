package controlplane

import (
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const loopback = "127.0.0.1"

// readyTimeout limits the start of a component.
const readyTimeout = 60 * time.Second

// binaries returns the folder of both programs.
func (c Config) binaries() (string, error) {
	if c.Binaries != "" {
		return c.Binaries, nil
	}
	self, err := os.Executable()
	return filepath.Dir(self), err
}

// etcdServer configures etcd. The user's flags override the others.
func etcdServer(l Layout, config Config, port int) (*envtest.Etcd, error) {
	folder, err := config.binaries()
	if err != nil {
		return nil, err
	}
	launcher, err := writeLauncher(l, Etcd, folder)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(l.etcdData(), 0o700); err != nil {
		return nil, err
	}
	server := &envtest.Etcd{
		Path: launcher, DataDir: l.etcdData(), StartTimeout: readyTimeout, StopTimeout: stopGrace,
		URL: &url.URL{Scheme: "http", Host: loopback + ":" + strconv.Itoa(port)},
	}
	// Data survives a killed process, but not a crash of the machine. This is much faster and sufficient for
	// a sandbox.
	server.Configure().Set("unsafe-no-fsync", "true").
		Set("quota-backend-bytes", "8589934592").
		Set("log-level", "info")
	appendFlags(server.Configure(), config.EtcdArgs)
	return server, nil
}

// apiServerServer configures kube-apiserver. The user's flags override the others.
func apiServerServer(l Layout, config Config, port int, etcd *url.URL) (*envtest.APIServer, error) {
	folder, err := config.binaries()
	if err != nil {
		return nil, err
	}
	launcher, err := writeLauncher(l, APIServer, folder)
	if err != nil {
		return nil, err
	}
	server := &envtest.APIServer{
		Path: launcher, CertDir: l.pki(), EtcdURL: etcd, StartTimeout: readyTimeout, StopTimeout: stopGrace,
	}
	server.SecureServing.Address, server.SecureServing.Port = loopback, strconv.Itoa(port)
	server.SecureServing.Authn = tokensOnly{}
	flags := server.Configure().
		Set("token-auth-file", l.tokens()).
		Set("advertise-address", loopback).
		Set("endpoint-reconciler-type", "none").
		Set("service-account-issuer", "https://kubernetes.default.svc")
	if config.AuditLog {
		if err := writeFile(l.auditPolicy(), []byte(auditPolicy)); err != nil {
			return nil, err
		}
		flags.Set("audit-policy-file", l.auditPolicy()).Set("audit-log-path", l.AuditLog())
	}
	appendFlags(flags, config.APIServerArgs)
	return server, nil
}

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`
