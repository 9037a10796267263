package run

import (
	"context"
	"fmt"
	"os/exec"
	"runtime/debug"
	"strings"
)

// versions determines the versions of the measured software.
func (r *runner) versions(ctx context.Context) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return fmt.Errorf("the program was built without module support")
	}
	for _, module := range info.Deps {
		switch module.Path {
		case "k8s.io/client-go":
			r.result.Machine.ClientGo = module.Version
		case "sigs.k8s.io/controller-runtime":
			r.result.Machine.ControllerRuntime = module.Version
		}
	}
	// A copy without git has no revision, which is permitted.
	if revision, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12",
		"HEAD").Output(); err == nil {
		r.result.Machine.Commit = strings.TrimSpace(string(revision))
		if changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no",
			"--", "..").Output(); err == nil && len(changed) > 0 {
			r.result.Machine.Commit += "+"
		}
	}
	return nil
}
