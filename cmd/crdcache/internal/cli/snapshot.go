package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// newSnapshot returns the command.
func newSnapshot(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "snapshot COMMAND",
		SuggestFor: []string{"save", "backup", "export"},
		Short:      "Save a moment of a cluster in a file, and compare such moments",
		Long: "Save the objects of types, or of all, in one compressed file with checksums, together with the definitions,\n" +
			"the columns of tables and what discovery told. --from reads such a file in every verb in the place of a cluster,\n" +
			"with the same output.",
		Example: "  crdcache snapshot save before.snapshot --all --redact\n" +
			"  crdcache dump certificates --from before.snapshot\n" +
			"  crdcache snapshot info before.snapshot\n" +
			"  crdcache snapshot diff before.snapshot live",
		Args: noSuchVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		// Two letters wrong are a slip; more are another word.
		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newSnapshotSave(streams), newSnapshotInfo(streams), newSnapshotDiff(streams))
	for _, sub := range cmd.Commands() {
		sub.DisableFlagsInUseLine = true
	}
	return cmd
}
