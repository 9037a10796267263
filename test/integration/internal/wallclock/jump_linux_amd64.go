//go:build clockjumps

package wallclock

import (
	"sync/atomic"
	"time"
	_ "unsafe" // for go:linkname
)

// Available reports whether this program can change its clock.
const Available = true

// clockGettime is the address of the function with which the runtime reads clocks. With 0, the runtime calls
// the kernel.
//
//go:linkname clockGettime runtime.vdsoClockgettimeSym
var clockGettime uintptr

var (
	// kernels is the original value of clockGettime, the kernel's function.
	kernels uintptr
	// offset is the difference to the machine's clock in seconds.
	offset int64
)

// shiftedAddress returns the address of a function that adds offset to the wall clock.
func shiftedAddress() uintptr

func init() { kernels, clockGettime = clockGettime, shiftedAddress() }

// Set sets the difference to the machine's clock. It may be negative.
func Set(ahead time.Duration) { atomic.StoreInt64(&offset, int64(ahead/time.Second)) }
