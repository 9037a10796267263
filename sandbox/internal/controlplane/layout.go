package controlplane

import "path/filepath"

// Layout names the files of a sandbox directory.
type Layout struct {
	// Dir is the absolute path of the directory.
	Dir string
}

// NewLayout returns the layout of dir.
func NewLayout(dir string) (Layout, error) {
	abs, err := filepath.Abs(dir)
	return Layout{Dir: abs}, err
}

// Kubeconfig holds the admin and the unprivileged user.
func (l Layout) Kubeconfig() string { return filepath.Join(l.Dir, "kubeconfig") }

// Log is where a component's output goes.
func (l Layout) Log(c Component) string { return filepath.Join(l.Dir, string(c)+".log") }

// SupervisorLog is where a detached supervisor's own output goes.
func (l Layout) SupervisorLog() string { return filepath.Join(l.Dir, "supervisor.log") }

// AuditLog is written only when Config.AuditLog asks for it.
func (l Layout) AuditLog() string { return filepath.Join(l.Dir, "audit.log") }

func (l Layout) auditPolicy() string { return filepath.Join(l.Dir, "audit-policy.yaml") }
func (l Layout) lock() string        { return filepath.Join(l.Dir, "lock") }
func (l Layout) state() string       { return filepath.Join(l.Dir, "state.json") }
func (l Layout) etcdData() string    { return filepath.Join(l.Dir, "etcd") }
func (l Layout) pki() string         { return filepath.Join(l.Dir, "pki") }
func (l Layout) caCert() string      { return filepath.Join(l.pki(), "ca.crt") }
func (l Layout) servingCert() string { return filepath.Join(l.pki(), "apiserver.crt") }
func (l Layout) servingKey() string  { return filepath.Join(l.pki(), "apiserver.key") }
func (l Layout) saKey() string       { return filepath.Join(l.pki(), "service-account.key") }
func (l Layout) tokens() string      { return filepath.Join(l.pki(), "tokens.csv") }
