//go:build !linux && !darwin

package print

import "os"

// NotifyHangup never reports a closed pipe on this system. The next write fails.
func NotifyHangup(*os.File, <-chan struct{}) <-chan struct{} { return nil }
