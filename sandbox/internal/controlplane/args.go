package controlplane

import (
	"fmt"
	"strings"
)

const loopback = "127.0.0.1"

// etcdArgs are the arguments of etcd. The user's come last, and win.
func etcdArgs(l Layout, clientPort, peerPort int, extra []string) []string {
	client := httpURL(clientPort)
	peer := httpURL(peerPort)
	return append([]string{
		"--name=sandbox",
		"--data-dir=" + l.etcdData(),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=sandbox=" + peer,
		// Data survives a killed process, not a killed machine: that is all
		// a sandbox needs, and it is many times faster.
		"--unsafe-no-fsync",
		"--quota-backend-bytes=8589934592",
		"--log-level=info",
	}, asFlags(extra)...)
}

// apiServerArgs are the arguments of kube-apiserver. The user's come last, and win.
func apiServerArgs(l Layout, etcdPort, port int, audit bool, extra []string) []string {
	args := []string{
		"--etcd-servers=" + httpURL(etcdPort),
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", port),
		"--cert-dir=" + l.pki(),
		"--tls-cert-file=" + l.servingCert(),
		"--tls-private-key-file=" + l.servingKey(),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + l.saKey(),
		"--service-account-signing-key-file=" + l.saKey(),
		"--token-auth-file=" + l.tokens(),
		"--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.0.0.0/24",
		// No controller makes service accounts here, so pods must do without.
		"--disable-admission-plugins=ServiceAccount",
		"--endpoint-reconciler-type=none",
	}
	if audit {
		args = append(args,
			"--audit-policy-file="+l.auditPolicy(),
			"--audit-log-path="+l.AuditLog())
	}
	return append(args, asFlags(extra)...)
}

// asFlags lets users leave out the leading dashes.
func asFlags(args []string) []string {
	flags := make([]string, 0, len(args))
	for _, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			arg = "--" + arg
		}
		flags = append(flags, arg)
	}
	return flags
}

func httpURL(port int) string  { return fmt.Sprintf("http://%s:%d", loopback, port) }
func httpsURL(port int) string { return fmt.Sprintf("https://%s:%d", loopback, port) }
