// Command genschema writes the JSON Schema of index configs to a file.
package main

import (
	"fmt"
	"os"

	"github.com/crdcache/crdcache/indexers"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: genschema FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], indexers.Schema(), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
