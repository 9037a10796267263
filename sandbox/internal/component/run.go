package component

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go metrics on /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric on /metrics
	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	"github.com/crdcache/crdcache/sandbox/internal/child"
	"github.com/crdcache/crdcache/sandbox/internal/controlplane"
)

// Run turns this process into a component and returns its exit code. The
// process ends earlier if its supervisor does.
func Run(c controlplane.Child) int {
	child.ExitWithParent(c.RemoveDir)
	os.Args = append([]string{string(c.Component)}, c.Args...)
	switch c.Component {
	case controlplane.Etcd:
		etcdmain.Main(os.Args)
		return 0
	case controlplane.APIServer:
		command := app.NewAPIServerCommand()
		command.SetArgs(c.Args)
		return cli.Run(command)
	default:
		fmt.Fprintf(os.Stderr, "unknown component %q\n", c.Component)
		return 1
	}
}
