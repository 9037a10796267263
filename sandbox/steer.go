package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/crdcache/crdcache/sandbox/internal/controlplane"
)

func newDown() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "down --dir DIR",
		Short: "Stop a sandbox; its data and logs stay",
		Long: `Stop the sandbox in DIR and return when it is gone. Without a running sandbox
there is nothing to do, and that is no error. The directory keeps the data, the
kubeconfig and the logs; delete it when they are of no more use.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return controlplane.Down(c.Context(), dir) },
	}
	addDirFlag(c, &dir)
	return c
}

func newRestart() *cobra.Command {
	return newComponentCommand("restart", "Restart one component on the same port, or start it after a kill",
		`Restart a component: SIGTERM, SIGKILL if it has not ended after 1 s, then a new
process on the same port. The command returns when the component is ready.`,
		func(ctx context.Context, client *controlplane.Client, component controlplane.Component) error {
			return client.Restart(ctx, component)
		})
}

func newKill() *cobra.Command {
	return newComponentCommand("kill", "End one component with SIGKILL; it stays dead until restarted",
		`End a component with SIGKILL. Its port stays reserved, so that connections are
refused, until "sandbox restart" starts it again.`,
		func(ctx context.Context, client *controlplane.Client, component controlplane.Component) error {
			return client.Kill(ctx, component)
		})
}

func newComponentCommand(
	verb, short, long string,
	run func(context.Context, *controlplane.Client, controlplane.Component) error,
) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:       verb + " etcd|apiserver --dir DIR",
		Short:     short,
		Long:      long,
		Args:      cobra.ExactArgs(1),
		ValidArgs: []string{string(controlplane.Etcd), string(controlplane.APIServer)},
		RunE: func(c *cobra.Command, args []string) error {
			component, err := controlplane.ParseComponent(args[0])
			if err != nil {
				return err
			}
			client, err := controlplane.Dial(dir)
			if err != nil {
				return err
			}
			return run(c.Context(), client, component)
		},
	}
	addDirFlag(c, &dir)
	return c
}

func newCompact() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "compact --dir DIR",
		Short: "Discard etcd's history, so that old resource versions expire",
		Long: `Compact etcd's history to its current revision and print that revision.

Lists at an older exact resource version and continue tokens then get 410 Gone.
A watch from an older resource version still works while the API server's watch
cache remembers it; "sandbox restart apiserver" empties that cache, and then such
watches get 410 Gone too.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := controlplane.Dial(dir)
			if err != nil {
				return err
			}
			revision, err := client.Compact(c.Context())
			if err != nil {
				return err
			}
			fmt.Println(revision)
			return nil
		},
	}
	addDirFlag(c, &dir)
	return c
}

func newStatus() *cobra.Command {
	var dir string
	var asJSON bool
	c := &cobra.Command{
		Use:   "status --dir DIR",
		Short: "Show the components of a sandbox; exit 1 if it does not run",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			status, err := fetchStatus(c.Context(), dir)
			if err != nil {
				return err
			}
			if asJSON {
				encoder := json.NewEncoder(os.Stdout)
				encoder.SetIndent("", "  ")
				return encoder.Encode(status)
			}
			return printStatus(status)
		},
	}
	addDirFlag(c, &dir)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func fetchStatus(ctx context.Context, dir string) (controlplane.Status, error) {
	client, err := controlplane.Dial(dir)
	if err != nil {
		return controlplane.Status{}, err
	}
	return client.Status(ctx)
}

func printStatus(status controlplane.Status) error {
	fmt.Printf("kubeconfig %s\nsupervisor %d\n", status.Kubeconfig, status.SupervisorPID)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "COMPONENT\tSTATE\tPID\tURL")
	for _, row := range []struct {
		name   controlplane.Component
		status controlplane.ComponentStatus
	}{{controlplane.Etcd, status.Etcd}, {controlplane.APIServer, status.APIServer}} {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", row.name, stateWord(row.status), row.status.PID, row.status.URL)
	}
	return w.Flush()
}

func stateWord(status controlplane.ComponentStatus) string {
	switch {
	case status.Ready:
		return "ready"
	case status.Alive:
		return "not ready"
	default:
		return "dead"
	}
}
