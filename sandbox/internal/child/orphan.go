package child

import (
	"io"
	"os"
)

// orphanExitCode is seen by nobody but a debugger: the parent is gone.
const orphanExitCode = 3

// ExitWithParent ends this process as soon as its standard input reaches
// end-of-file, which happens when the parent that holds the other end of the
// pipe ends in any way. If removeDir is not empty, that directory and all it
// holds are deleted first. It returns at once.
func ExitWithParent(removeDir string) {
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		if removeDir != "" {
			removeBusyDir(removeDir)
		}
		os.Exit(orphanExitCode)
	}()
}

// removeBusyDir deletes a directory that running code may still be writing to:
// a file created between listing and removing makes one pass fail.
func removeBusyDir(dir string) {
	for range 20 {
		if os.RemoveAll(dir) == nil {
			return
		}
	}
}
