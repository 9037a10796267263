package controlplane

import "path/filepath"

// Layout has the paths of the files in a sandbox directory.
type Layout struct {
	// Dir is the absolute path of the directory.
	Dir string
}

// NewLayout returns the layout of dir.
func NewLayout(dir string) (Layout, error) {
	abs, err := filepath.Abs(dir)
	return Layout{Dir: abs}, err
}

// Kubeconfig returns the path of the kubeconfig for the admin and the unprivileged user.
func (l Layout) Kubeconfig() string { return filepath.Join(l.Dir, "kubeconfig") }

// Log returns the path of a component's output.
func (l Layout) Log(c Component) string { return filepath.Join(l.Dir, string(c)+".log") }

// SupervisorLog returns the path of a detached supervisor's output.
func (l Layout) SupervisorLog() string { return filepath.Join(l.Dir, "supervisor.log") }

// AuditLog returns the path of the audit log, which requires Config.AuditLog.
func (l Layout) AuditLog() string { return filepath.Join(l.Dir, "audit.log") }

// CommandPID returns the path of the process ID of the command of "sandbox exec".
func (l Layout) CommandPID() string { return l.pidFile("command") }

func (l Layout) auditPolicy() string         { return filepath.Join(l.Dir, "audit-policy.yaml") }
func (l Layout) lock() string                { return filepath.Join(l.Dir, "lock") }
func (l Layout) state() string               { return filepath.Join(l.Dir, "state.json") }
func (l Layout) etcdData() string            { return filepath.Join(l.Dir, "etcd") }
func (l Layout) launcher(c Component) string { return filepath.Join(l.Dir, string(c)+".sh") }
func (l Layout) pidFile(name string) string  { return filepath.Join(l.Dir, name+".pid") }
func (l Layout) tokens() string              { return filepath.Join(l.Dir, "tokens.csv") }
func (l Layout) pki() string                 { return filepath.Join(l.Dir, "pki") }
func (l Layout) caCert() string              { return filepath.Join(l.pki(), "ca.crt") }
