package main

import (
	"fmt"
	"strings"
	"time"
)

const (
	certificateLifetime = 90 * 24 * time.Hour
	renewBefore         = 30 * 24 * time.Hour
	// One of unreadyRatio certificates waits for its issuer.
	unreadyRatio = 16
)

var issuers = []struct{ kind, name string }{
	{"ClusterIssuer", "letsencrypt-production"},
	{"ClusterIssuer", "letsencrypt-staging"},
	{"ClusterIssuer", "internal-ca"},
	{"Issuer", "team-ca"},
	{"Issuer", "vault-pki"},
}

// newCertificateContent returns the content of a Certificate that a Helm chart created and cert-manager
// issued.
func newCertificateContent(id objectIdentity, size string) objectContent {
	domain := fmt.Sprintf("%s.%s.example.com", id.name, id.namespace)
	application, _, _ := strings.Cut(id.name, "-")
	ready := id.rng.IntN(unreadyRatio) != 0
	return objectContent{
		labels: map[string]any{
			"app.kubernetes.io/name":     application,
			"app.kubernetes.io/instance": id.name,
			"team":                       id.namespace,
		},
		annotations: certificateAnnotations(id, application, size),
		body: map[string]any{
			"spec":   certificateSpec(id, domain, size),
			"status": certificateStatus(id, ready),
		},
	}
}

func certificateAnnotations(id objectIdentity, application, size string) map[string]any {
	annotations := map[string]any{"meta.helm.sh/release-name": application}
	if size == sizeLarge {
		for i := range 14 {
			key := fmt.Sprintf("platform.example.com/note-%02d", i)
			annotations[key] = fmt.Sprintf(
				"%s owner=%s tier=%d contact=oncall@%s.example.com runbook=https://wiki.example.com/%s/certificates#rotation",
				application, id.namespace, id.rng.IntN(4), id.namespace, application)
		}
	}
	return annotations
}

func certificateSpec(id objectIdentity, domain, size string) map[string]any {
	issuer := randomElement(id.rng, issuers)
	algorithm, bits := "RSA", randomElement(id.rng, []int64{2048, 4096})
	if id.rng.IntN(3) == 0 {
		algorithm, bits = "ECDSA", 256
	}
	names := []any{domain, "www." + domain}
	if size == sizeLarge {
		for i := range 82 {
			names = append(names, fmt.Sprintf("shard-%02d.%s", i, domain))
		}
	}
	return map[string]any{
		"commonName":  truncate(domain, 64),
		"dnsNames":    names,
		"duration":    "2160h0m0s",
		"renewBefore": "720h0m0s",
		"issuerRef":   map[string]any{"group": "cert-manager.io", "kind": issuer.kind, "name": issuer.name},
		"privateKey": map[string]any{"algorithm": algorithm, "encoding": "PKCS1", "rotationPolicy": "Always",
			"size": bits},
		"secretName": id.name + "-tls",
		"usages":     []any{"digital signature", "key encipherment", "server auth"},
	}
}

func certificateStatus(id objectIdentity, ready bool) map[string]any {
	issued := id.created.Add(time.Duration(20+id.rng.IntN(300)) * time.Second)
	if !ready {
		return map[string]any{
			"conditions": []any{newCondition("Ready", "False", "DoesNotExist",
				"Issuing certificate as Secret does not exist", issued)},
			"failedIssuanceAttempts": int64(1 + id.rng.IntN(5)),
			"lastFailureTime":        timestamp(issued),
		}
	}
	return map[string]any{
		"conditions": []any{newCondition("Ready", "True", "Ready",
			"Certificate is up to date and has not expired", issued)},
		"notBefore":   timestamp(issued),
		"notAfter":    timestamp(issued.Add(certificateLifetime)),
		"renewalTime": timestamp(issued.Add(certificateLifetime - renewBefore)),
		"revision":    int64(1 + id.rng.IntN(9)),
	}
}

func newCondition(kind, status, reason, message string, transitionTime time.Time) map[string]any {
	return map[string]any{
		"type": kind, "status": status, "reason": reason, "message": message,
		"lastTransitionTime": timestamp(transitionTime), "observedGeneration": int64(1),
	}
}

func truncate(s string, maxLength int) string {
	if len(s) > maxLength {
		return strings.TrimRight(s[:maxLength], ".-")
	}
	return s
}
