// Command sandbox runs a real etcd and a real kube-apiserver on loopback, for tests, demonstrations and
// benchmarks. See README.md.
package main

import (
	"os"

	"github.com/crdcache/crdcache/sandbox/internal/cmd"
)

func main() {
	os.Exit(cmd.Main(os.Args))
}
