//go:build clockjumps

package wallclock

import (
	"sync/atomic"
	"time"
	_ "unsafe" // for go:linkname
)

// Available says whether clocks can jump in this program.
const Available = true

// clockGettime is the address of the function that the runtime reads clocks with; 0: it asks the kernel.
//
//go:linkname clockGettime runtime.vdsoClockgettimeSym
var clockGettime uintptr

var (
	// kernels is what clockGettime was.
	kernels uintptr
	// offset is how many seconds the clock is ahead.
	offset int64
)

// shiftedAddress is the address of a function like the kernel's that adds offset to the clock on the wall.
func shiftedAddress() uintptr

func init() { kernels, clockGettime = clockGettime, shiftedAddress() }

// Set has the clock be so many seconds ahead of the machine's, or behind it.
func Set(ahead time.Duration) { atomic.StoreInt64(&offset, int64(ahead/time.Second)) }
