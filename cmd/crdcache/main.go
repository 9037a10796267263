// Command crdcache keeps and queries a live copy of Kubernetes resources.
package main

import (
	"os"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

func main() { os.Exit(cli.Program()) }
