package cli

// memoryLimits are recommended limits, in bytes, of a program that caches a number of objects of a type.
type memoryLimits struct {
	Objects int `json:"objects"`
	// Budget is for Options.MemoryBudget: the cache at rest and a tenth of it.
	Budget int64 `json:"budget"`
	// GoMemoryLimit is for GOMEMLIMIT, and ContainerLimit for the container.
	GoMemoryLimit  int64 `json:"goMemoryLimit"`
	ContainerLimit int64 `json:"containerLimit"`
}

// maxLimitObjects is the largest value of --limit.
const maxLimitObjects = 1_000_000_000

// recommendLimits returns the limits for objects of objectBytes each, including the cache's table and
// indexes. A relist needs up to 1.4 times the memory of the cache;
// the garbage collector needs room beyond that.
func recommendLimits(objectBytes float64, objects int) *memoryLimits {
	const (
		mebibyte = 1 << 20
		// runtimeMemory is for goroutines, connections and buffers, and programMemory for the program's code.
		runtimeMemory, programMemory = 24 * mebibyte, 40 * mebibyte
	)
	cacheBytes := objectBytes * float64(objects)
	roundUp := func(bytes float64) int64 { return (int64(bytes)/mebibyte + 1) * mebibyte }
	limits := &memoryLimits{Objects: objects, Budget: roundUp(cacheBytes * 1.1),
		GoMemoryLimit: roundUp(cacheBytes*2 + runtimeMemory)}
	limits.ContainerLimit = roundUp(float64(limits.GoMemoryLimit)*1.1 + programMemory)
	return limits
}
