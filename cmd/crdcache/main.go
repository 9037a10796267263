// Command crdcache caches Kubernetes resources, follows their changes, and answers queries.
package main

import (
	"os"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

func main() { os.Exit(cli.Program()) }
