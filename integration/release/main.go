// Command release sets the version of the published modules.
//
//	release -version v0.9.0 -write           the state to tag: no module replaces another one
//	release -version v0.9.0 -write -develop  the state of the branch: modules replace each other by folders
//	release -version v0.9.0 -proxy DIR       a GOPROXY of the modules, without a change of the tree
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	version := flag.String("version", "", "the version, such as v0.9.0")
	root := flag.String("root", "..", "the folder of the repository")
	write := flag.Bool("write", false, "change the go.mod and go.sum files")
	develop := flag.Bool("develop", false, "with -write: replace the modules by their folders")
	proxy := flag.String("proxy", "", "write the modules as a GOPROXY into this folder")
	flag.Parse()
	if err := run(*root, *version, *write, *develop, *proxy); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(root, version string, write, develop bool, proxy string) error {
	r, err := newRelease(root, version)
	if err != nil {
		return err
	}
	if proxy != "" {
		if err := r.writeProxy(proxy); err != nil {
			return err
		}
	}
	switch {
	case write && develop:
		return r.develop()
	case write:
		return r.publish()
	}
	return nil
}
