// Command crdcache caches Kubernetes resources, follows their changes, and answers queries. This build, which
// is the released one, supports CEL.
package main

import (
	"os"

	_ "github.com/crdcache/crdcache/cel"
	"github.com/crdcache/crdcache/cmd/crdcache/program"
)

func main() { os.Exit(program.Run()) }
