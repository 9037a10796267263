//go:build !unix

package localserver

import (
	"io/fs"
	"os"
	"os/exec"
)

// isOwnedByUser returns false, because these systems do not report the owner. Therefore no server runs on
// them.
func isOwnedByUser(fs.FileInfo) bool { return false }

func tryLock(*os.File) bool { return false }

func detach(*exec.Cmd) {}
