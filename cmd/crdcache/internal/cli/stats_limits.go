package cli

// memoryLimits are the recommended limits in bytes of a program that caches some objects of a type.
type memoryLimits struct {
	Objects int `json:"objects"`
	// Budget is for Options.MemoryBudget: the cache at rest and a tenth of it.
	Budget int64 `json:"budget"`
	// GoMemoryLimit is for GOMEMLIMIT, and ContainerLimit for the container.
	GoMemoryLimit  int64 `json:"goMemoryLimit"`
	ContainerLimit int64 `json:"containerLimit"`
}

// maxLimit is the largest number of objects for which limits are recommended.
const maxLimit = 1_000_000_000

// recommendLimits returns the limits for objects of a size in bytes, including the cache's table and indexes,
// of which inFiles bytes are in files. A relist needs up to 1.4 times the memory of the cache; the garbage
// collector needs room beyond that. The container includes the cached pages of the files.
func recommendLimits(size, inFiles float64, objects int) *memoryLimits {
	const (
		mebibyte = 1 << 20
		// runtimeMemory is for goroutines, connections and buffers, and programMemory for the program's code.
		runtimeMemory, programMemory = 24 * mebibyte, 40 * mebibyte
	)
	cache, files := size*float64(objects), inFiles*float64(objects)
	roundUp := func(bytes float64) int64 { return (int64(bytes)/mebibyte + 1) * mebibyte }
	l := &memoryLimits{Objects: objects, Budget: roundUp(cache * 1.1),
		GoMemoryLimit: roundUp((cache-files)*2 + runtimeMemory)}
	l.ContainerLimit = roundUp(float64(l.GoMemoryLimit)*1.1 + programMemory + files)
	return l
}
