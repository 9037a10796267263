// Command crdcache caches Kubernetes resources, follows their changes, and answers queries.
package main

import (
	"os"

	_ "github.com/crdcache/crdcache/adapters/cel" // CEL in configs and queries
	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	_ "github.com/crdcache/crdcache/cmd/crdcache/internal/columns" // of built-in types in files
)

func main() { os.Exit(cli.Program()) }
