// Package compressortest has the tests of all compressors.
package compressortest

import (
	"fmt"
	"math/rand/v2"
)

// Certificate returns a custom resource of about 1.2 KB without managed fields, as an API server sends it.
func Certificate(n int) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	uid := fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.Uint32N(1<<16), r.Uint32N(1<<12),
		r.Uint32N(1<<12), r.Uint64N(1<<48))
	return fmt.Appendf(nil, `{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"annotations":{"cert-manager.io/issue-temporary-certificate":"true","team":"team-%[2]d"},"creationTimestamp":"2026-11-20T10:%02[3]d:00Z","generation":1,"labels":{"app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/name":"app-%[2]d","env":"prod"},"name":"certificate-%[1]d","namespace":"tenant-%[2]d","resourceVersion":"%[4]d","uid":"%[5]s"},"spec":{"dnsNames":["host-%[1]d.example.com","www.host-%[1]d.example.com"],"duration":"2160h0m0s","issuerRef":{"group":"cert-manager.io","kind":"ClusterIssuer","name":"letsencrypt"},"privateKey":{"algorithm":"ECDSA","rotationPolicy":"Always","size":256},"renewBefore":"360h0m0s","secretName":"tls-%[1]d","usages":["digital signature","key encipherment"]},"status":{"conditions":[{"lastTransitionTime":"2026-11-20T10:%02[3]d:05Z","message":"Certificate is up to date and has not expired","observedGeneration":1,"reason":"Ready","status":"True","type":"Ready"}],"notAfter":"2027-02-18T10:%02[3]d:04Z","notBefore":"2026-11-20T10:%02[3]d:04Z","renewalTime":"2027-02-03T10:%02[3]d:04Z","revision":1}}`,
		n, n%50, n%60, 1_000_000+n, uid)
}

// Certificates returns count certificates.
func Certificates(from, count int) [][]byte {
	all := make([][]byte, count)
	for n := range all {
		all[n] = Certificate(from + n)
	}
	return all
}
