package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/capture"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/snapshot"
)

type snapshotSaveFlags struct {
	target *session.ServerFlags
	all    bool
	redact bool
	config string
}

func newSnapshotSave(streams genericiooptions.IOStreams) *cobra.Command {
	f := &snapshotSaveFlags{target: session.NewServerFlags()}
	cmd := &cobra.Command{
		Use:   "save FILE (TYPE... | --all) [flags]",
		Short: "Save the objects of types in a file",
		Long: "Save all objects of the types in a file that only you can read; '-' is standard\n" +
			"output. The default is all namespaces. CustomResourceDefinitions, table columns\n" +
			"and discovery are saved as well. A complete new snapshot replaces an existing\n" +
			"one.",
		Annotations: detailsAnnotation("Each type is saved at one resource version, which the file contains. Types are\n" +
			"read one after another. A type that cannot be read is reported and recorded in\n" +
			"the file, and the exit code is not 0.\n\n" +
			"--redact omits the data of Secrets, and --redact-config the fields listed in a\n" +
			"file, as in 'redact: [{type: gizmos.example.com, paths: [.spec.token]}]'. With\n" +
			"--from, the snapshot is made of files or of a part of another snapshot."),
		Example: "  crdcache snapshot save before.snapshot --all --redact\n" +
			"  crdcache snapshot save certs.snapshot '*.cert-manager.io' secrets -n web",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return exit.Usagef("name the file, as in '%s before.snapshot --all'", cmd.CommandPath())
			case len(args) == 1 && !f.all:
				return exit.Usagef("name the types after the file, or use --all")
			case len(args) > 1 && f.all:
				return exit.Usagef("--all and types cannot be used together: use one of them")
			}
			return nil
		},
		RunE: newRunE(streams, f.toOptions),
	}
	set := cmd.Flags()
	f.target.Add(set)
	set.BoolVar(&f.all, "all", false, "Save all types that can be listed and watched.")
	set.BoolVar(&f.redact, "redact", false, "Omit the data of Secrets.")
	set.StringVar(&f.config, "redact-config", "",
		"YAML file with fields to omit. The data of Secrets is omitted as well.")
	f.target.Complete(cmd)
	types := f.target.CompleteTypes(true, nil)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string,
		begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return types(cmd, args[1:], begun)
	}
	return cmd
}

// snapshotSaveOptions are the validated flags and arguments of snapshot save.
type snapshotSaveOptions struct {
	genericiooptions.IOStreams
	target     *session.Target
	path       string
	types      []string // empty means all
	redactions []capture.Redaction
}

func (f *snapshotSaveFlags) toOptions(cmd *cobra.Command, args []string,
	streams genericiooptions.IOStreams) (*snapshotSaveOptions, error) {
	o := &snapshotSaveOptions{IOStreams: f.target.Streams(streams), path: args[0]}
	var err error
	if o.types, err = session.SplitTypes(args[1:]); err != nil {
		return nil, err
	}
	if f.redact || f.config != "" {
		o.redactions = append(o.redactions, capture.Secrets)
	}
	if f.config != "" {
		text, err := os.ReadFile(f.config)
		if err != nil {
			return nil, exit.Usagef("--redact-config: %v", err)
		}
		paths, err := capture.ParseRedactions(text)
		if err != nil {
			return nil, exit.Usagef("--redact-config: %s: %v", f.config, err)
		}
		o.redactions = append(o.redactions, paths...)
	}
	if err := checkOverwrite(o.path); err != nil {
		return nil, err
	}
	if o.path == stdoutPath && print.IsTerminal(streams.Out) {
		return nil, exit.Usagef("a snapshot is binary and is not written to a terminal: name a file, or redirect the output")
	}
	if o.target, err = f.target.Target(cmd.Context(), o.IOStreams); err != nil {
		return nil, err
	}
	if named := cmd.Flags().Lookup("namespace"); named.Value.String() == "" {
		o.target.Namespace = "" // a snapshot has the whole cluster, not the namespace of the context
	}
	return o, nil
}

func (o *snapshotSaveOptions) warn(text string) { fmt.Fprintf(o.ErrOut, "warning: %s\n", text) }

// stdoutPath selects standard output.
const stdoutPath = "-"

// checkOverwrite rejects an existing file that is not a snapshot: the first argument could be a type by
// mistake.
func checkOverwrite(path string) error {
	if path == stdoutPath {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return exit.Usagef("%s is not a regular file: name another file, or - for standard output", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	head := make([]byte, len(snapshot.Magic()))
	if n, err := io.ReadFull(file, head); n > 0 && (err != nil || !bytes.Equal(head, snapshot.Magic())) {
		return exit.Usagef("%s exists and is not a snapshot: name another file, or remove it", path)
	}
	return nil
}

func (o *snapshotSaveOptions) run(ctx context.Context) error {
	saver, unresolved, err := o.newSaver(ctx)
	if err != nil {
		return err
	}
	origin := snapshot.Origin{Tool: "crdcache " + buildInfo().Version}
	if o.path == stdoutPath {
		saver.Writer = snapshot.NewWriter(o.Out, origin)
	} else if saver.Writer, err = snapshot.Create(o.path, origin); err != nil {
		return err
	}
	defer saver.Writer.Abort()
	if saver.Sequential = o.target.ReadsFiles(); saver.Sequential {
		saver.Writer.SetOrigin(func(origin *snapshot.Origin) { origin.Created = o.target.SnapshotTime() })
	}
	done := o.target.Progress(saver.Progress)
	failed, err := saver.Save(ctx)
	done()
	if failed {
		return errors.Join(unresolved, err)
	}
	contents := saver.Writer.Contents()
	if failed := saver.Writer.Commit(); failed != nil {
		return errors.Join(unresolved, err, failed)
	}
	o.printSummary(contents)
	return errors.Join(unresolved, err)
}

// newSaver resolves the types. Types that cannot be found are joined in unresolved and do not prevent saving
// the others.
func (o *snapshotSaveOptions) newSaver(ctx context.Context) (newSaver *capture.Saver, unresolved, err error) {
	limitedCtx, cancel := o.target.Limit(ctx)
	defer cancel()
	catalog, err := o.target.Catalog(limitedCtx)
	if err != nil {
		return nil, nil, err
	}
	newSaver = &capture.Saver{AllTypes: catalog.Resources(), Warn: o.warn}
	for _, group := range catalog.FailedGroupVersions() {
		o.warn(fmt.Sprintf("%v: types of this group may be missing", group))
	}
	if len(o.types) > 0 {
		if newSaver.Types, unresolved = o.target.Resolve(limitedCtx, o.types); len(newSaver.Types) == 0 {
			return nil, nil, unresolved
		}
	} else {
		newSaver.Types = slices.DeleteFunc(slices.Clone(newSaver.AllTypes),
			func(r discovery.Resource) bool { return !r.Preferred || !r.Watchable() })
		for _, r := range newSaver.Types {
			o.target.RecordUse(r.GVR.GroupResource())
		}
		unresolved = o.target.Err()
	}
	if err := o.resolveRedactions(limitedCtx, newSaver); err != nil {
		return nil, nil, err
	}
	newSaver.Reader, err = newReader(o.target, o.target.Namespace)
	return newSaver, unresolved, err
}

func newReader(target *session.Target, namespace string) (capture.Reader, error) {
	client, err := target.PlainClient()
	return capture.Reader{Client: client, Namespace: namespace}, err
}

// resolveRedactions resolves the types of the redactions. A missing type is an error, because a misspelled
// name would leave its data in the snapshot.
func (o *snapshotSaveOptions) resolveRedactions(ctx context.Context, saver *capture.Saver) error {
	for _, redaction := range o.redactions {
		found, err := o.target.Resolve(ctx, []string{redaction.Type})
		if err != nil && redaction.Type != capture.Secrets.Type {
			return exit.Usagef("--redact-config: %v", err)
		}
		var types []schema.GroupResource
		for _, r := range found {
			types = append(types, r.GVR.GroupResource())
		}
		saver.Redactor.Add(redaction, types...)
	}
	return nil
}

var secretsResource = schema.GroupResource{Resource: "secrets"}

// printSummary prints the number of saved types and objects.
func (o *snapshotSaveOptions) printSummary(contents snapshot.Contents) {
	types, objects := 0, 0
	for _, t := range contents.Types {
		if t.Missing == nil {
			types++
			objects += t.Objects
		}
		if t.GVR().GroupResource() == secretsResource && t.Objects > 0 && len(o.redactions) == 0 {
			o.warn(fmt.Sprintf("the file contains the data of %d Secrets; use --redact to omit it",
				t.Objects))
		}
	}
	fmt.Fprintf(o.ErrOut, "saved %d objects of %d types in %s\n", objects, types, o.path)
}
