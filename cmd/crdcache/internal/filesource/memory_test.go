package filesource

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// writeCertificates writes objects of 2 KB each as kubectl get -o json does, without a definition.
func writeCertificates(tb testing.TB, n int) string {
	tb.Helper()
	var text bytes.Buffer
	text.WriteString("{\n\"apiVersion\": \"v1\",\n\"items\": [\n")
	for i := range n {
		names := []string{}
		for k := range 12 {
			names = append(names, fmt.Sprintf("host-%d.team-%d.region-%d.example.com", i, i%97, k))
		}
		data, err := json.Marshal(map[string]any{
			"apiVersion": "example.com/v1", "kind": "Certificate",
			"metadata": map[string]any{
				"name": fmt.Sprint("certificate-", i), "namespace": fmt.Sprint("team-",
					i%97), "uid": fmt.Sprintf("00000000-0000-0000-0000-%012d", i),
				"resourceVersion": fmt.Sprint(1000 +
					i), "labels": map[string]string{"team": fmt.Sprint("team-",
					i%97), "app.kubernetes.io/part-of": "shop"},
			},
			"spec": map[string]any{"dnsNames": names, "secretName": fmt.Sprint("secret-", i),
				"issuerRef": map[string]string{"kind": "ClusterIssuer", "name": "ca"}},
			"status": map[string]any{"conditions": []any{map[string]string{"type": "Ready", "status": "True",
				"message": fmt.Sprintf("%0700d", i)}}},
		})
		if err != nil {
			tb.Fatal(err)
		}
		if i > 0 {
			text.WriteString(",\n")
		}
		text.Write(data)
	}
	text.WriteString("\n],\n\"kind\": \"List\"\n}\n")
	path := filepath.Join(tb.TempDir(), "certificates.json")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// liveHeap returns the size of reachable memory.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // releases memory freed by finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMemory verifies that an object of an inferred type takes at most 900 bytes in addition to its JSON.
func TestMemory(t *testing.T) {
	const n = 1000
	path := writeCertificates(t, n)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	before := liveHeap()
	s := openSource(t, Options{Paths: []string{path}})
	perObject := float64(liveHeap()-before) / n
	size := float64(info.Size()) / n
	t.Logf("%.0f bytes of heap for an object of %.0f bytes", perObject, size)
	if perObject > size+900 {
		t.Errorf("%.0f bytes of heap for an object of %.0f bytes, want at most 900 bytes more", perObject,
			size)
	}
	runtime.KeepAlive(s)
}
