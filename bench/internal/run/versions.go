package run

import (
	"context"
	"fmt"
	"os/exec"
	"runtime/debug"
	"strings"
)

// versions finds out which software is measured.
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
	// A copy without git's data has no revision, and that is all right.
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
