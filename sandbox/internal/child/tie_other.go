//go:build !linux

package child

import (
	"os/exec"
	"syscall"
)

// Signal is what a child receives when its parent dies. Only Linux can deliver
// it; elsewhere ExitWithParent does the work alone.
type Signal = syscall.Signal

func tieToParent(*exec.Cmd, Signal) {}
