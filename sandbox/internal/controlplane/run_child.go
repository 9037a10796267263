package controlplane

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go metrics on /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric on /metrics
	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	"github.com/crdcache/crdcache/sandbox/internal/child"
)

// childMarker is the first argument of a process that is to become a component.
// It is followed by the component, the directory to delete when orphaned (or
// an empty string), and the component's own arguments.
const childMarker = "__component"

// IsChild reports whether the arguments ask this process to become a component.
func IsChild(args []string) bool {
	return len(args) >= 4 && args[1] == childMarker
}

// RunChild becomes the component that args name and returns its exit code. It
// ends the process when the parent dies.
func RunChild(args []string) int {
	component, removeDir, rest := Component(args[2]), args[3], args[4:]
	child.ExitWithParent(removeDir)
	os.Args = append([]string{string(component)}, rest...)
	switch component {
	case Etcd:
		etcdmain.Main(os.Args)
		return 0
	case APIServer:
		command := app.NewAPIServerCommand()
		command.SetArgs(rest)
		return cli.Run(command)
	default:
		fmt.Fprintf(os.Stderr, "unknown component %q\n", component)
		return 1
	}
}

func childArgs(c Component, removeDir string, args []string) []string {
	return append([]string{childMarker, string(c), removeDir}, args...)
}
