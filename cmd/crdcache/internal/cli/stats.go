package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/storage/s2"
)

// statsFlags are the flags of stats.
type statsFlags struct {
	reader  *session.ReadFlags
	storage string
	top     int
	output  string
}

// newStats returns the command.
func newStats(streams genericiooptions.IOStreams) *cobra.Command {
	f := &statsFlags{reader: session.NewReadFlags()}
	cmd := &cobra.Command{
		Use:        "stats TYPE... [flags]",
		SuggestFor: []string{"top", "count"},
		Short:      "Show what caching types costs, and how the values of indexes are distributed",
		Long: "Sync the types and print the number of their objects, the memory that they and their indexes occupy in\n" +
			"a storage mode, how long the sync took, and the most frequent values of each index. Of the indexes of a\n" +
			"config also what they leave out and why, the objects that \"missing: report\" asks for, and the values that\n" +
			"several objects have where \"unique: warn\" is set.",
		Example: "  crdcache stats certificates.cert-manager.io -A --storage compressed\n" +
			"  crdcache stats certs --config indexes.yaml --top 20",
		Args: session.NeedTypes,
		RunE: runs(streams, f.toOptions),
	}
	set := cmd.Flags()
	f.reader.Add(set)
	f.reader.AddCache(set)
	set.StringVar(&f.storage, "storage", dynamicinformer.StoragePacked.String(), "How objects are kept: packed, compressed, adaptive, object or metadata.")
	set.IntVar(&f.top, "top", 5, "How many values of each index to show; 0 shows none.")
	set.StringVarP(&f.output, "output", "o", formatText, "Output format: text or json.")
	f.reader.Complete(cmd, true)
	print.CompleteWords(cmd, "storage", []string{"packed", "compressed", "adaptive", "object", "metadata"})
	print.CompleteWords(cmd, "output", []string{formatText, formatJSON})
	return cmd
}

// statsOptions are what flags and arguments amount to.
type statsOptions struct {
	*session.Reader
	top  int
	json bool
}

func (f *statsFlags) toOptions(cmd *cobra.Command, args []string, streams genericiooptions.IOStreams) (*statsOptions, error) {
	if err := print.OneOf("output format", f.output, []string{formatText, formatJSON}); err != nil {
		return nil, err
	}
	if f.top < 0 {
		return nil, exit.Usagef("--top is %d: it must not be negative; 0 shows no values", f.top)
	}
	var cached dynamicinformer.ResourceOptions
	if err := cached.Storage.Mode.UnmarshalText([]byte(f.storage)); err != nil || f.storage == "" {
		return nil, exit.Usagef("--storage is %q; use packed, compressed, adaptive, object or metadata", f.storage)
	}
	switch cached.Storage.Mode {
	case dynamicinformer.StorageCompressed, dynamicinformer.StorageAdaptive:
		cached.Storage.Compression = s2.New(s2.Options{})
	}
	cached.Prune.Presets = []dynamicinformer.PrunePreset{dynamicinformer.PruneManagedFields}
	read, err := f.reader.Reader(cmd.Context(), args, cached, streams)
	return &statsOptions{Reader: read, top: f.top, json: f.output == formatJSON}, err
}
