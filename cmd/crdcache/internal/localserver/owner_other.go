//go:build !unix

package localserver

import (
	"io/fs"
	"os"
	"os/exec"
)

// isOwnedByUser returns false, because the owner of a file is unknown here. Nothing is served on these
// systems.
func isOwnedByUser(fs.FileInfo) bool { return false }

func tryLock(*os.File) bool { return false }

func detach(*exec.Cmd) {}
