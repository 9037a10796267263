package cli_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// certificate returns a cert-manager Certificate with 1.8 KB of JSON.
func certificate(i int) map[string]any {
	team, name := fmt.Sprintf("team-%03d", i%100), fmt.Sprintf("web-%05d", i)
	domain := name + "." + team + ".example.com"
	domains := []string{domain, "www." + domain}
	for n := range 11 {
		domains = append(domains, fmt.Sprintf("shard-%02d.%s", n, domain))
	}
	at := fmt.Sprintf("2026-%02d-%02dT%02d:00:00Z", 1+i%12, 1+i%28, i%24)
	return map[string]any{
		"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
		"metadata": map[string]any{
			"annotations":       map[string]any{"note": fmt.Sprintf("owner=%s contact=oncall@%[1]s.example.com runbook=https://wiki.example.com/certificates#rotation", team), "checksum": fmt.Sprintf("%064x", i*7919)},
			"creationTimestamp": at, "generation": 1, "name": name, "namespace": team,
			"resourceVersion": fmt.Sprint(1000 + i), "uid": fmt.Sprintf("%08x-0000-4000-8000-%012x",
				uint32(i)*104729, i),
			"labels": map[string]any{"app.kubernetes.io/instance": name, "app.kubernetes.io/name": "web",
				"team": team},
		},
		"spec": map[string]any{
			"commonName": domain, "dnsNames": domains, "duration": "2160h0m0s",
			"issuerRef": map[string]any{"group": "cert-manager.io", "kind": "ClusterIssuer",
				"name": "letsencrypt"},
			"privateKey": map[string]any{"algorithm": "RSA", "rotationPolicy": "Always",
				"size": 2048}, "renewBefore": "720h0m0s", "secretName": name + "-tls",
			"usages": []string{"digital signature", "key encipherment", "server auth"},
		},
		"status": map[string]any{
			"conditions": []any{map[string]any{"lastTransitionTime": at,
				"message": "Certificate is up to date and has not expired", "observedGeneration": 1,
				"reason": "Ready", "status": "True", "type": "Ready"}},
			"notAfter": at, "notBefore": at, "renewalTime": at, "revision": 1 + i%9,
		},
	}
}

// writeCertificates writes Certificates as JSON lines or as a list. It does not keep them in memory, because
// a process inherits the peak memory of its parent.
func writeCertificates(b *testing.B, file string, n int) {
	b.Helper()
	out, err := os.Create(file)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriter(out)
	head, tail, indent, between := "", "", "", ""
	if filepath.Ext(file) == ".json" {
		head, tail = "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n",
			"    ],\n    \"kind\": \"List\"\n}\n"
		indent, between = "        ", ","
	}
	w.WriteString(head)
	for i := range n {
		text, err := json.Marshal(certificate(i))
		if indent != "" {
			text, err = json.MarshalIndent(certificate(i), indent, "    ")
		}
		if err != nil {
			b.Fatal(err)
		}
		if i == n-1 {
			between = ""
		}
		fmt.Fprintf(w, "%s%s%s\n", indent, text, between)
	}
	w.WriteString(tail)
	if err := errors.Join(w.Flush(), out.Close()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkFrom reads 50,000 Certificates from a file in a process of its own. The limits are 1.5 s of CPU
// time and 200 MiB of memory.
func BenchmarkFrom(b *testing.B) {
	program := filepath.Join(b.TempDir(), "crdcache") // not the test binary, which is three times as large
	if text, err := exec.CommandContext(b.Context(), "go", "build", "-o", program,
		"../..").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, text)
	}
	for _, ending := range []string{"jsonl", "json"} {
		b.Run(ending, func(b *testing.B) {
			file := filepath.Join(b.TempDir(), "certificates."+ending)
			writeCertificates(b, file, 50000)
			var seconds, peak float64
			for b.Loop() {
				command := exec.CommandContext(b.Context(), program, "dump", "certificates", "-o", "name",
					"--quiet", "--from", file)
				if err := command.Run(); err != nil {
					b.Fatal(err)
				}
				state := command.ProcessState
				seconds += (state.UserTime() + state.SystemTime()).Seconds()
				if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
					peak = max(peak, float64(usage.Maxrss)/1024)
				}
			}
			b.ReportMetric(seconds/float64(b.N), "cpu-s/op")
			b.ReportMetric(peak, "peak-MiB")
		})
	}
}
