package indexers

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// BuildLimits limit the addition of indexes to a cache. Zero means no limit.
type BuildLimits struct {
	// IndexBytes limits the values of one index, and TypeBytes the values of all indexes of a type, in bytes.
	IndexBytes, TypeBytes int64
	// IndexTime is the mean time that one index may take for an object, and TypeTime that of all indexes that
	// are added together.
	IndexTime, TypeTime time.Duration
}

// build is an addition of indexes to a cache.
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

// LimitBuild limits the computation of these indexes until EndBuild. An index that exceeds a limit is
// refused: it stays incomplete, and costs no more. usedBytes is the size of the other indexes of the type.
// CheckBuild also returns an error when ctx has ended.
func (f *Functions) LimitBuild(ctx context.Context, limits BuildLimits, usedBytes int64) {
	f.build.Store(&build{ctx: ctx, limits: limits, used: usedBytes,
		indexes: make([]indexCost, len(f.functions))})
}

// EndBuild ends the limits.
func (f *Functions) EndBuild() { f.build.Store(nil) }

// Refuse ends the computation of all indexes for a reason. They stay incomplete.
func (f *Functions) Refuse(reason error) {
	for _, fn := range f.functions {
		fn.incompleteReason.CompareAndSwap(nil, &reason)
	}
}

// Refusal returns why the named index is incomplete, or nil.
func (f *Functions) Refusal(name string) error {
	for _, fn := range f.functions {
		if reason := fn.incompleteReason.Load(); fn.index.Name == name && reason != nil {
			return *reason
		}
	}
	return nil
}

// CheckBuild returns an error if the addition of the indexes must end; see LimitBuild.
func (f *Functions) CheckBuild() error {
	if b := f.build.Load(); b != nil && b.ctx.Err() != nil {
		return fmt.Errorf("build the indexes: %w", context.Cause(b.ctx))
	}
	for _, fn := range f.functions {
		if reason := fn.incompleteReason.Load(); reason != nil {
			return *reason
		}
	}
	return nil
}

// addKeys counts the keys of an object in index i, and the time to compute them.
func (b *build) addKeys(i int, keys []string, elapsed time.Duration) {
	bytes := 0
	for _, key := range keys {
		bytes += len(key) + valueOverhead
	}
	b.indexes[i].bytes.Add(int64(bytes))
	b.indexes[i].nanoseconds.Add(int64(elapsed))
}

// refuseCostly ends the computation of the indexes that exceed a limit after another object.
func (f *Functions) refuseCostly(b *build) {
	objects, bytes, elapsed := b.objects.Add(1), b.used, time.Duration(0)
	for i, fn := range f.functions {
		indexBytes, indexTime := b.indexes[i].bytes.Load(), time.Duration(b.indexes[i].nanoseconds.Load())
		var reason error
		switch limits := b.limits; {
		case fn.incompleteReason.Load() != nil:
			continue
		case limits.IndexBytes > 0 && indexBytes > limits.IndexBytes:
			reason = fmt.Errorf("the index %q needs more than %d bytes after %d objects: "+
				"index fewer or shorter values, or raise the limit", fn.index.Name, limits.IndexBytes, objects)
		case limits.IndexTime > 0 && indexTime > minMeasured &&
			indexTime/time.Duration(objects) > limits.IndexTime:
			reason = fmt.Errorf("the index %q takes %v for an object; the limit is %v: simplify its expression",
				fn.index.Name, (indexTime / time.Duration(objects)).Round(time.Microsecond), limits.IndexTime)
		}
		if reason != nil {
			fn.incompleteReason.CompareAndSwap(nil, &reason)
			continue
		}
		bytes, elapsed = bytes+indexBytes, elapsed+indexTime
	}
	switch limits := b.limits; {
	case limits.TypeBytes > 0 && bytes > limits.TypeBytes:
		f.Refuse(fmt.Errorf("the indexes of the type need more than %d bytes after %d objects: "+
			"index fewer or shorter values, or raise the limit", limits.TypeBytes, objects))
	case limits.TypeTime > 0 && elapsed > minMeasured && elapsed/time.Duration(objects) > limits.TypeTime:
		f.Refuse(fmt.Errorf("the indexes of the type take %v for an object; the limit is %v: "+
			"simplify their expressions", (elapsed / time.Duration(objects)).Round(time.Microsecond), limits.TypeTime))
	}
}
