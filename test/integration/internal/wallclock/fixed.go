//go:build !clockjumps || !linux || !amd64

package wallclock

import "time"

// Available reports whether this program can change its clock.
const Available = false

// Set does nothing.
func Set(time.Duration) {}
