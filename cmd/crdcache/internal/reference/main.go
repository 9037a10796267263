// Command reference writes what the commands say of themselves: docs/cli.md, and man pages into a directory.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

func main() {
	page := flag.String("page", "", "file to write the page of all commands to")
	man := flag.String("man", "", "directory to write man pages to")
	flag.Parse()
	if err := run(*page, *man); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// escape keeps the text of commands from being read as HTML tags, which man pages lose.
func escape(cmd *cobra.Command) {
	cmd.Long = strings.ReplaceAll(cmd.Long, "<", "\\<")
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "<", "\\<") })
	for _, sub := range cmd.Commands() {
		escape(sub)
	}
}

func run(page, man string) error {
	if page != "" {
		if err := os.WriteFile(page, markdown(cli.Command()), 0o644); err != nil {
			return err
		}
	}
	if man == "" {
		return nil
	}
	if err := os.MkdirAll(man, 0o755); err != nil {
		return err
	}
	root := cli.Command()
	root.DisableAutoGenTag = true
	escape(root)
	// The date of the pages is that of SOURCE_DATE_EPOCH, if it is set.
	return doc.GenManTree(root, &doc.GenManHeader{Title: "CRDCACHE", Section: "1", Source: "crdcache",
		Manual: "crdcache"}, man)
}
