// Package snapshots has the commands snapshot and diff, which save and compare the states of clusters.
package snapshots

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

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/internal/snapshot"
)

// New returns the command. version is that of the program, which snapshots record.
func New(streams genericiooptions.IOStreams, version string) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "snapshot COMMAND",
		SuggestFor: []string{"save", "backup", "export"},
		Short:      "Save the state of a cluster in a file",
	}
	cmd.AddCommand(newSnapshotSave(streams, version), newSnapshotInfo(streams))
	return cmd
}

type snapshotInfoVerb struct {
	genericiooptions.IOStreams
	format string
	verify bool
}

func newSnapshotInfo(streams genericiooptions.IOStreams) *cobra.Command {
	o := &snapshotInfoVerb{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "info FILE [flags]",
		Short: "Print the content of a snapshot",
		Args:  session.ExactlyOne("file", "before.snapshot"),
		RunE:  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	session.AddOutput(cmd, &o.format, session.FormatText, session.FormatJSON, session.FormatYAML)
	cmd.Flags().BoolVar(&o.verify, "verify", false, "Read the whole file and check all checksums.")
	return cmd
}

type snapshotRecord struct {
	snapshot.Origin
	Bytes int64                `json:"bytes"`
	Types []snapshot.SavedType `json:"types"`
	notes []error
}

func (o *snapshotInfoVerb) run(ctx context.Context, path string) (err error) {
	file, err := snapshot.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if o.verify {
		if err := file.Verify(ctx); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	contents := file.Contents()
	record := snapshotRecord{contents.Origin, contents.Size, contents.Types, contents.Notes}
	record.Server.Documents = nil // repeated among the types
	if o.format == session.FormatText {
		_, err = io.WriteString(o.Out, record.text())
	} else {
		err = session.WriteStructured(o.Out, o.format, record)
	}
	return errors.Join(append(contents.Damage, err)...)
}

func (r snapshotRecord) text() string {
	var b strings.Builder
	writeLine := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name+":", print.Printable(value))
		}
	}
	if !r.Created.IsZero() {
		writeLine("Saved", r.Created.Format(time.RFC3339))
	}
	writeLine("By", r.Tool)
	writeLine("Server", r.serverText())
	writeLine("Namespace", r.Namespace)
	for _, redaction := range r.Redacted {
		writeLine("Without", redaction.String())
	}
	writeLine("Size", fmt.Sprintf("%d bytes", r.Bytes))
	b.WriteString("\n")
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprint(w, "NAME\tOBJECTS\tBYTES\tIN FILE\tRESOURCE VERSION\n")
	notRequested := 0
	for _, t := range r.Types {
		switch {
		case t.Missing == nil:
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\n", print.Printable(t.GVR().GroupResource().String()), t.Objects,
				t.Bytes, t.Stored, print.Printable(t.ResourceVersion))
		case t.NotRequested:
			notRequested++
		}
	}
	_ = w.Flush() // a strings.Builder does not fail
	for _, t := range r.Types {
		if t.Partial != "" {
			fmt.Fprintf(&b, "partial: %s: %s\n", t.GVR().GroupResource(), print.OneSafeLine(t.Partial))
		}
		if t.Missing != nil && !t.NotRequested {
			fmt.Fprintf(&b, "missing: %s\n", print.OneSafeLine(t.Missing.Message))
		}
	}
	for _, reason := range r.Incomplete {
		fmt.Fprintf(&b, "incomplete: %s\n", print.OneSafeLine(reason.Text))
	}
	for _, group := range r.UnknownGroups {
		fmt.Fprintf(&b, "unknown: the types of %s\n", print.OneSafeLine(group.String()))
	}
	for _, note := range r.notes {
		fmt.Fprintf(&b, "note: %s\n", print.OneSafeLine(note.Error()))
	}
	if notRequested > 0 {
		fmt.Fprintf(&b, "not saved: %d other types of the server\n", notRequested)
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
