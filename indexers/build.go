package indexers

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// BuildLimits limit the addition of indexes to a cache with objects. Zero means no limit.
type BuildLimits struct {
	// IndexBytes limits the values of one index, and TypeBytes those of all indexes of a type, in bytes.
	IndexBytes, TypeBytes int64
	// IndexTime is the mean time that one index may take for an object, and TypeTime that of all indexes that
	// are added together.
	IndexTime, TypeTime time.Duration
}

// build is an addition of indexes to a cache with objects.
type build struct {
	ctx     context.Context
	limits  BuildLimits
	used    int64 // bytes of the type's other indexes
	objects atomic.Int64
	indexes []indexCost
}

// indexCost is the cost of an index since the build began.
type indexCost struct{ bytes, nanoseconds atomic.Int64 }

// valueOverhead is the memory of a value in an index in addition to its text, in bytes.
const valueOverhead = 32

// minMeasured is the time from which the mean time for an object is meaningful.
const minMeasured = 200 * time.Millisecond

// LimitBuild ends the next additions of these indexes when ctx ends or a limit is exceeded. usedBytes is the
// size of the other indexes of the type. end ends the measurement.
func (f *Functions) LimitBuild(ctx context.Context, limits BuildLimits, usedBytes int64) (end func()) {
	f.build.Store(&build{ctx: ctx, limits: limits, used: usedBytes,
		indexes: make([]indexCost, len(f.functions))})
	return func() { f.build.Store(nil) }
}

// count counts the keys of an object in index i, and the time to compute them.
func (b *build) count(i int, keys []string, elapsed time.Duration) {
	bytes := 0
	for _, key := range keys {
		bytes += len(key) + valueOverhead
	}
	b.indexes[i].bytes.Add(int64(bytes))
	b.indexes[i].nanoseconds.Add(int64(elapsed))
	if i == 0 {
		b.objects.Add(1)
	}
}

// CheckBuild returns an error if the addition of the indexes must end; see LimitBuild.
func (f *Functions) CheckBuild() error {
	b := f.build.Load()
	if b == nil {
		return nil
	}
	if b.ctx.Err() != nil {
		return fmt.Errorf("build the indexes: %w", context.Cause(b.ctx))
	}
	objects, bytes, elapsed := max(b.objects.Load(), 1), b.used, time.Duration(0)
	for i := range b.indexes {
		cost, name := &b.indexes[i], f.functions[i].index.Name
		indexBytes, indexTime := cost.bytes.Load(), time.Duration(cost.nanoseconds.Load())
		switch limits := b.limits; {
		case limits.IndexBytes > 0 && indexBytes > limits.IndexBytes:
			return fmt.Errorf("the index %q needs more than %d bytes after %d objects: index fewer or shorter values, or raise the limit",
				name, limits.IndexBytes, objects)
		case limits.IndexTime > 0 && indexTime > minMeasured &&
			indexTime/time.Duration(objects) > limits.IndexTime:
			return fmt.Errorf("the index %q takes %v for an object; the limit is %v: simplify its expression", name,
				(indexTime / time.Duration(objects)).Round(time.Microsecond), limits.IndexTime)
		}
		bytes, elapsed = bytes+indexBytes, elapsed+indexTime
	}
	switch limits := b.limits; {
	case limits.TypeBytes > 0 && bytes > limits.TypeBytes:
		return fmt.Errorf("the indexes of the type need more than %d bytes after %d objects: index fewer or shorter values, or raise the limit",
			limits.TypeBytes, objects)
	case limits.TypeTime > 0 && elapsed > minMeasured && elapsed/time.Duration(objects) > limits.TypeTime:
		return fmt.Errorf("the indexes of the type take %v for an object; the limit is %v: simplify their expressions",
			(elapsed / time.Duration(objects)).Round(time.Microsecond), limits.TypeTime)
	}
	return nil
}
