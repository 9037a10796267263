package store

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/packed"
)

// Sampling ends after maxSampledObjects decoded objects or maxSampledBytes, whichever comes first. Objects
// share strings, and a sample counts shared strings once, so a small sample overestimates the mean.
const (
	maxSampledObjects = 128
	maxSampledBytes   = 1 << 20
)

// decodedSize caches the average size of decoded objects, the most expensive part of Stats. It is computed
// again after an eighth of the objects may have changed.
type decodedSize struct {
	mu struct {
		sync.Mutex
		mean float64
		// replacedAtMeasurement is sizes.replaced when mean was computed.
		replacedAtMeasurement int64
	}
}

func (d *decodedSize) bytes(current *Snapshot) int64 {
	if current.sizes.decoded == 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if changed := current.sizes.replaced - d.mu.replacedAtMeasurement; d.mu.mean == 0 || changed < 0 ||
		changed > int64(current.sizes.decoded/8) {
		d.mu.mean = meanDecodedSize(current)
		d.mu.replacedAtMeasurement = current.sizes.replaced
	}
	return int64(d.mu.mean * float64(current.sizes.decoded))
}

func meanDecodedSize(current *Snapshot) float64 {
	var size packed.DecodedSize
	count, visited := 0, 0
	for r := range current.rows.all {
		if r.packed() == nil {
			if u, ok := r.item().(*unstructured.Unstructured); ok {
				size.Add(u.Object)
			}
			count++
		}
		visited++ // a store with both kinds may have few decoded objects
		if count == maxSampledObjects || size.Bytes > maxSampledBytes || visited == 8*maxSampledObjects {
			break
		}
	}
	return float64(size.Bytes) / float64(max(count, 1))
}
