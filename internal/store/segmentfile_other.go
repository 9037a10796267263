//go:build !linux && !darwin

package store

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

func openSegment(string, int64) (*os.File, error) {
	return nil, fmt.Errorf("store objects in files on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
