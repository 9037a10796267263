package cli

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// The output formats of verbs that print no objects.
const (
	formatText  = "text"
	formatTable = "table"
	formatWide  = "wide"
	formatName  = "name"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

// runner is what the flags and arguments of a verb amount to.
type runner interface {
	run(ctx context.Context) error
}

// runs is how verbs run: their flags and arguments are checked and become options, without asking a server, and those run.
func runs[O runner](streams genericiooptions.IOStreams, toOptions func(*cobra.Command, []string, genericiooptions.IOStreams) (O, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		o, err := toOptions(cmd, args, streams)
		if err != nil {
			return err
		}
		return o.run(cmd.Context())
	}
}
