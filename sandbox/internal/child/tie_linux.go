package child

import (
	"os/exec"
	"syscall"
)

// Signal is what a child receives when its parent dies. Zero means nothing.
type Signal = syscall.Signal

func tieToParent(cmd *exec.Cmd, onParentDeath Signal) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = onParentDeath
}
