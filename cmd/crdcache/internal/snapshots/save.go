package snapshots

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/internal/block"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/snapshot"
)

type snapshotSaveVerb struct {
	version      string // of the program
	streams      genericiooptions.IOStreams
	flags        session.ServerFlags
	all          bool
	redact       bool
	redactConfig string

	targets         []*session.Target
	*session.Target // of the current cluster
	path            string
	types           []string // empty means all
	redactions      []redaction
}

func newSnapshotSave(streams genericiooptions.IOStreams, version string) *cobra.Command {
	o := &snapshotSaveVerb{streams: streams, version: version}
	cmd := &cobra.Command{
		Use:   "save FILE (TYPE... | --all) [flags]",
		Short: "Save the objects of types in a file",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return session.Usagef("name the file, as in '%s before.snapshot --all'", cmd.CommandPath())
			case len(args) == 1 && !o.all:
				return session.Usagef("name the types after the file, or use --all")
			case len(args) > 1 && o.all:
				return session.Usagef("--all and types cannot be used together: use one of them")
			}
			return nil
		},
		RunE: session.RunE(o.complete, o.run),
	}
	set := cmd.Flags()
	o.flags.Add(cmd)
	o.flags.AddContexts(cmd)
	set.BoolVar(&o.all, "all", false, "Save all types that can be listed.")
	set.BoolVar(&o.redact, "redact", false, "Omit the data of Secrets.")
	set.StringVar(&o.redactConfig, "redact-config", "", "")
	cmd.ValidArgsFunction = o.flags.CompleteFileAndTypes(1)
	return cmd
}

func (o *snapshotSaveVerb) complete(cmd *cobra.Command, args []string) (err error) {
	o.path = args[0]
	if o.types, err = session.SplitTypes(args[1:]); err != nil {
		return err
	}
	if o.redact || o.redactConfig != "" {
		o.redactions = append(o.redactions, secretsRedaction)
	}
	if o.redactConfig != "" {
		text, err := os.ReadFile(o.redactConfig)
		if err != nil {
			return session.Usagef("--redact-config: %v", err)
		}
		parsed, err := parseRedactions(text)
		if err != nil {
			return session.Usagef("--redact-config: %s: %v", o.redactConfig, err)
		}
		o.redactions = append(o.redactions, parsed...)
	}
	if o.path == stdoutPath && print.IsTerminal(o.streams.Out) {
		return session.Usagef("a snapshot is binary and is not written to a terminal: name a file, or redirect the output")
	}
	if o.targets, err = o.flags.Targets(cmd.Context(), o.streams); err != nil {
		return err
	}
	paths := map[string]string{} // to the contexts
	for _, t := range o.targets {
		if cmd.Flags().Lookup("namespace").Value.String() == "" {
			t.Namespace = "" // a snapshot has the whole cluster, not the namespace of the context
		}
		path := clusterPath(o.path, t.Cluster)
		if other, exists := paths[path]; exists {
			return session.Usagef("%s would have the snapshots of the contexts %s and %s: name the file as in '{cluster}.snapshot', or select one of them",
				path, other, t.Cluster)
		}
		paths[path] = t.Cluster
		if err := checkOverwrite(path); err != nil {
			return err
		}
	}
	return nil
}

// clusterPath replaces {cluster} in a path by the name of a cluster, without characters that are unusual in
// file names.
func clusterPath(path, cluster string) string {
	if cluster == "" {
		return path
	}
	return strings.ReplaceAll(path, "{cluster}", unusualInPath.ReplaceAllString(cluster, "_"))
}

var unusualInPath = regexp.MustCompile(`[^\w.@-]+`)

// stdoutPath selects standard output.
const stdoutPath = "-"

// checkOverwrite rejects an existing file that is not a snapshot. The user may have forgotten the FILE
// argument.
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
		return session.Usagef("%s is not a regular file: name another file, or - for standard output", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	head := make([]byte, len(block.Magic))
	if n, err := io.ReadFull(file, head); n > 0 && (err != nil || string(head) != block.Magic) {
		return session.Usagef("%s exists and is not a snapshot: name another file, or remove it", path)
	}
	return nil
}

func (o *snapshotSaveVerb) run(ctx context.Context) error {
	return session.EachCluster(ctx, o.targets, func(ctx context.Context, t *session.Target) error {
		cluster := *o
		cluster.Target, cluster.path = t, clusterPath(o.path, t.Cluster)
		return cluster.save(ctx)
	})
}

func (o *snapshotSaveVerb) save(ctx context.Context) error {
	saver, unresolved, err := o.newSaver(ctx)
	if err != nil {
		return err
	}
	origin := snapshot.Origin{Tool: "crdcache " + o.version}
	if o.path == stdoutPath {
		saver.writer = snapshot.NewWriter(o.Out, origin)
	} else if saver.writer, err = snapshot.Create(o.path, origin); err != nil {
		return err
	}
	defer saver.writer.Abort()
	if saver.sequential = o.ReadsFiles(); saver.sequential {
		saver.writer.SetOrigin(func(origin *snapshot.Origin) {
			origin.UnknownGroups = slices.DeleteFunc(slices.Clone(o.SnapshotOrigin().UnknownGroups),
				func(g snapshot.UnknownGroup) bool { return g.Group != snapshot.AllGroups })
		})
	}
	unusable, err := saver.save(ctx)
	if unusable {
		return errors.Join(unresolved, err)
	}
	contents := saver.writer.Contents()
	if unusable := saver.writer.Commit(); unusable != nil {
		return errors.Join(unresolved, err, unusable)
	}
	o.printSummary(contents)
	return errors.Join(unresolved, err)
}

// newSaver resolves the types. unresolved joins the errors of names without a type. The other types are saved
// nevertheless.
func (o *snapshotSaveVerb) newSaver(ctx context.Context) (saver *snapshotSaver, unresolved, err error) {
	limitedCtx, cancel := o.WithTimeout(ctx)
	defer cancel()
	catalog, err := o.Catalog(limitedCtx)
	if err != nil {
		return nil, nil, err
	}
	saver = &snapshotSaver{target: o.Target, allTypes: catalog.Resources(), namespace: o.Namespace,
		unknownGroups: catalog.FailedGroupVersions()}
	o.SelectVersions(false, o.types...)
	if len(o.types) > 0 {
		if saver.types, unresolved = o.Resolve(limitedCtx, o.types, "list"); len(saver.types) == 0 {
			return nil, nil, unresolved
		}
		versions := map[schema.GroupResource]discovery.Resource{}
		for _, r := range saver.types {
			gr := r.GVR.GroupResource()
			if other, exists := versions[gr]; exists {
				return nil, nil, session.Usagef("%s and %s are one type, and a snapshot has each object once: name %s, or save the versions in two files",
					other, r, gr)
			}
			versions[gr] = r
		}
	} else {
		saver.types = slices.DeleteFunc(slices.Clone(saver.allTypes),
			func(r discovery.Resource) bool { return !r.Preferred || !r.HasVerbs("list") })
		typeOf := func(r discovery.Resource) schema.GroupResource { return r.GVR.GroupResource() }
		o.RecordUse(true, naming.Map(saver.types, typeOf)...)
		unresolved = errors.Join(session.UnknownGroups("", saver.unknownGroups), o.FilesErr(nil))
	}
	return saver, unresolved, o.resolveRedactions(limitedCtx, saver)
}

// resolveRedactions resolves the types of the redactions. A missing type is an error, because a misspelled
// name would leave its data in the snapshot.
func (o *snapshotSaveVerb) resolveRedactions(ctx context.Context, saver *snapshotSaver) error {
	for _, rule := range o.redactions {
		found, err := o.Resolve(ctx, []string{rule.Type})
		if err != nil && rule.Type != secretsRedaction.Type {
			return session.Usagef("--redact-config: %v", err)
		}
		nameOf := func(r discovery.Resource) schema.GroupResource { return r.GVR.GroupResource() }
		saver.redactor.add(rule, naming.Map(found, nameOf)...)
	}
	return nil
}

var secretsResource = schema.GroupResource{Resource: "secrets"}

func (o *snapshotSaveVerb) printSummary(contents snapshot.Contents) {
	types, objects := 0, 0
	for _, t := range contents.Types {
		if t.Missing == nil {
			types++
			objects += t.Objects
		}
		if t.GVR().GroupResource() == secretsResource && t.Objects > 0 && len(o.redactions) == 0 {
			o.Warnf("the file contains the data of %d Secrets; use --redact to omit it", t.Objects)
		}
	}
	fmt.Fprintf(o.ErrOut, "saved %s of %s in %s\n", naming.FormatCount(objects, "object"), naming.FormatCount(types, "type"), o.path)
}
