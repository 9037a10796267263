package store

import (
	"sync"
	"unsafe"

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
		// replacedAtMeasurement is sizes.replaced when mean was computed. isMeasured is set after the first
		// measurement.
		replacedAtMeasurement int64
		isMeasured            bool
	}
}

func (d *decodedSize) bytes(current *Snapshot) int64 {
	if current.sizes.decoded == 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if changed := current.sizes.replaced - d.mu.replacedAtMeasurement; !d.mu.isMeasured || changed < 0 ||
		changed > int64(current.sizes.decoded/8) {
		d.mu.mean, d.mu.isMeasured = meanDecodedSize(current), true
		d.mu.replacedAtMeasurement = current.sizes.replaced
	}
	return int64(d.mu.mean * float64(current.sizes.decoded))
}

func meanDecodedSize(current *Snapshot) float64 {
	var walk sizeWalk
	count, visited := 0, 0
	for r := range current.rows.all {
		if r.packed() == nil {
			walk.addObject(r.item())
			count++
		}
		visited++ // a store with both kinds may have few decoded objects
		if count == maxSampledObjects || walk.bytes > maxSampledBytes || visited == 8*maxSampledObjects {
			break
		}
	}
	return float64(walk.bytes) / float64(max(count, 1))
}

// sizeWalk adds up the heap size of values, counting shared ones once.
type sizeWalk struct {
	bytes int64
	seen  map[unsafe.Pointer]bool
}

// firstVisit reports whether p is visited for the first time.
func (w *sizeWalk) firstVisit(p unsafe.Pointer) bool {
	if p == nil || w.seen[p] {
		return false
	}
	if w.seen == nil {
		w.seen = map[unsafe.Pointer]bool{}
	}
	w.seen[p] = true
	return true
}

// addObject adds an object. It ignores types other than *unstructured.Unstructured.
func (w *sizeWalk) addObject(item Item) {
	if u, ok := item.(*unstructured.Unstructured); ok && u != nil {
		w.bytes += int64(packed.AllocationSize(int(unsafe.Sizeof(*u))))
		w.addMap(u.Object)
	}
}

// dataPointer returns the data word of an interface value, which is a pointer to the value unless that has a
// pointer type.
func dataPointer(value any) unsafe.Pointer { return (*[2]unsafe.Pointer)(unsafe.Pointer(&value))[1] }

func (w *sizeWalk) addValue(addValue any) {
	switch v := addValue.(type) {
	case map[string]any:
		w.addMap(v)
	case string:
		if w.firstVisit(dataPointer(addValue)) {
			w.bytes += int64(packed.AllocationSize(int(unsafe.Sizeof(v))))
		}
		w.addText(v)
	case []any:
		if w.firstVisit(dataPointer(addValue)) {
			w.bytes += int64(packed.AllocationSize(int(unsafe.Sizeof(v))) +
				pointerAllocationSize(cap(v)*int(unsafe.Sizeof(addValue))))
		}
		for _, element := range v {
			w.addValue(element)
		}
	case int64:
		if v < 0 || v > 255 { // others are preallocated by the runtime
			w.bytes += 8
		}
	case float64:
		w.bytes += 8
	}
}

func (w *sizeWalk) addText(addText string) {
	if w.firstVisit(unsafe.Pointer(unsafe.StringData(addText))) {
		w.bytes += int64(packed.AllocationSize(len(addText)))
	}
}

// Sizes of maps: a header, and groups of eight slots with a control word, at most seven eighths full. Large
// maps also have a directory, which is neglected.
const (
	pointerSize = int(unsafe.Sizeof(uintptr(0)))
	mapHeader   = 16 + 4*pointerSize
	mapTable    = 16 + 2*pointerSize
	groupSlots  = 8
)

func (w *sizeWalk) addMap(m map[string]any) {
	if m == nil {
		return
	}
	slot := int(unsafe.Sizeof("")) + int(unsafe.Sizeof(any(nil)))
	switch {
	case len(m) == 0:
		w.bytes += int64(mapHeader)
	case len(m) <= groupSlots:
		w.bytes += int64(mapHeader + pointerAllocationSize(8+groupSlots*slot))
	default:
		slots := 2 * groupSlots
		for len(m) > slots/8*7 {
			slots *= 2
		}
		w.bytes += int64(mapHeader + mapTable + 8 +
			pointerAllocationSize(slots/groupSlots*(8+groupSlots*slot)))
	}
	for key, value := range m {
		w.addText(key)
		w.addValue(value)
	}
}
