package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/snapshot"
)

func newSnapshot(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "snapshot COMMAND",
		SuggestFor: []string{"save", "backup", "export"},
		Short:      "Save the state of a cluster in a file, and compare states",
		Long: "Save the objects of types in one compressed file with checksums, together with\n" +
			"CustomResourceDefinitions, table columns and discovery. All commands can read\n" +
			"the file with --from instead of a cluster, with the same output.",
		Example: "  crdcache snapshot save before.snapshot --all --redact\n" +
			"  crdcache dump certificates --from before.snapshot\n" +
			"  crdcache snapshot info before.snapshot\n" +
			"  crdcache snapshot diff before.snapshot live",
		Args: rejectUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		// Names that differ by up to two letters are probably misspelled.
		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newSnapshotSave(streams), newSnapshotInfo(streams), newSnapshotDiff(streams))
	for _, sub := range cmd.Commands() {
		sub.DisableFlagsInUseLine = true
	}
	return cmd
}

type snapshotInfoOptions struct {
	genericiooptions.IOStreams
	path   string
	format string
	verify bool
}

var snapshotInfoFormats = []string{formatText, formatJSON, formatYAML}

func newSnapshotInfo(streams genericiooptions.IOStreams) *cobra.Command {
	o := &snapshotInfoOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "info FILE [flags]",
		Short: "Print the content of a snapshot",
		Long: "Print when and where a snapshot was saved, its types with the number of objects\n" +
			"and the resource version, the redacted fields, and the reasons for missing\n" +
			"types.",
		Example: "  crdcache snapshot info before.snapshot --verify",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("name one file, as in '%s before.snapshot'; got %d arguments",
					cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := print.OneOf("output format", o.format, snapshotInfoFormats); err != nil {
				return err
			}
			o.path = args[0]
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&o.format, "output", "o", formatText, "Output format: text, json or yaml.")
	cmd.Flags().BoolVar(&o.verify, "verify", false, "Read the whole file and check all checksums.")
	print.CompleteWords(cmd, "output", snapshotInfoFormats)
	return cmd
}

// snapshotRecord is the JSON and YAML form.
type snapshotRecord struct {
	snapshot.Origin
	Bytes int64                `json:"bytes"`
	Types []snapshot.SavedType `json:"types"`
}

func (o *snapshotInfoOptions) run(ctx context.Context) (err error) {
	file, err := snapshot.Open(o.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if o.verify {
		if err := file.Verify(ctx); err != nil {
			return fmt.Errorf("%s: %w", o.path, err)
		}
	}
	contents := file.Contents()
	record := snapshotRecord{Origin: contents.Origin, Bytes: contents.Size}
	record.Server.Documents = nil // repeated among the types
	for _, t := range contents.Types {
		t.Columns = nil
		record.Types = append(record.Types, t)
	}
	if o.format != formatText {
		return writeStructured(o.Out, o.format, record)
	}
	_, err = io.WriteString(o.Out, record.text())
	return err
}

func (r snapshotRecord) text() string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name+":", print.Printable(value))
		}
	}
	if !r.Created.IsZero() {
		line("Saved", r.Created.Format(time.RFC3339))
	}
	line("By", r.Tool)
	line("Server", r.serverText())
	line("Namespace", r.Namespace)
	for _, redaction := range r.Redacted {
		line("Without", redaction.String())
	}
	line("Size", fmt.Sprintf("%d bytes", r.Bytes))
	b.WriteString("\n")
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprint(w, "NAME\tOBJECTS\tBYTES\tIN FILE\tRESOURCE VERSION\n")
	unsaved := 0
	for _, t := range r.Types {
		name := t.GVR().GroupResource()
		switch {
		case t.Missing == nil:
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\n", print.Printable(name.String()), t.Objects, t.Bytes,
				t.Stored, print.Printable(t.ResourceVersion))
		case t.NotRequested:
			unsaved++
		}
	}
	_ = w.Flush() // a strings.Builder does not fail
	for _, t := range r.Types {
		if t.Missing != nil && !t.NotRequested {
			fmt.Fprintf(&b, "missing: %s\n", print.OneSafeLine(t.Missing.Message))
		}
	}
	if unsaved > 0 {
		fmt.Fprintf(&b, "not saved: %d other types of the server\n", unsaved)
	}
	return b.String()
}

func (r snapshotRecord) serverText() string {
	text := r.Server.Host
	var info version.Info
	if json.Unmarshal(r.Server.Version, &info) == nil && info.GitVersion != "" {
		text += " (" + info.GitVersion + ")"
	}
	return text
}
