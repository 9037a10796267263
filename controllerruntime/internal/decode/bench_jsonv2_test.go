//go:build goexperiment.jsonv2

package decode

import (
	"encoding/json/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// BenchmarkDecodeV2 is BenchmarkDecode for encoding/json/v2. Run it with GOEXPERIMENT=jsonv2.
func BenchmarkDecodeV2(b *testing.B) {
	data := []byte(podJSON)
	b.ReportAllocs()
	for b.Loop() {
		var pod corev1.Pod
		if err := json.Unmarshal(data, &pod); err != nil {
			b.Fatal(err)
		}
	}
}
