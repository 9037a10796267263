//go:build !linux

package child

import "os"

// Self returns a path that starts this program again.
func Self() (string, error) { return os.Executable() }
