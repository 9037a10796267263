package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/naming"
)

type resourcesVerb struct {
	streams   genericiooptions.IOStreams
	flags     session.ServerFlags
	configs   session.ConfigFlags
	format    string
	noHeaders bool
	custom    bool

	targets []*session.Target
	types   []string
	config  *session.Config
	records []typeRecord // of all clusters

	*session.Target // of the current cluster
}

func newResources(streams genericiooptions.IOStreams) *cobra.Command {
	o := &resourcesVerb{streams: streams}
	cmd := &cobra.Command{
		Use:               "resources [TYPE...] [flags]",
		SuggestFor:        []string{"api-resources", "types", "crds"},
		Short:             "List types with their versions and state",
		ValidArgsFunction: o.flags.CompleteTypes(true, nil),
		RunE:              session.RunE(o.complete, o.run),
	}
	o.flags.Add(cmd)
	o.flags.AddContexts(cmd)
	o.configs.Add(cmd.Flags())
	session.AddOutput(cmd, &o.format, session.FormatTable, session.FormatWide, session.FormatName,
		session.FormatJSON, session.FormatYAML)
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "Print the table without headers.")
	cmd.Flags().BoolVar(&o.custom, "custom", false, "List only types with a CustomResourceDefinition.")
	return cmd
}

func (o *resourcesVerb) complete(cmd *cobra.Command, args []string) (err error) {
	if o.types, err = session.SplitTypes(args); err != nil {
		return err
	}
	if o.config, err = o.configs.Load(o.flags.Streams(o.streams).ErrOut); err != nil {
		return err
	}
	if o.config.IsSet && o.format == session.FormatName {
		return session.Usagef("--config and --output name cannot be used together: names have no indexes")
	}
	o.targets, err = o.flags.Targets(cmd.Context(), o.streams)
	o.records = []typeRecord{}
	return err
}

// run discovers the types of all clusters and prints them.
func (o *resourcesVerb) run(ctx context.Context) error {
	discovered := false
	err := session.EachCluster(ctx, o.targets, func(ctx context.Context, t *session.Target) error {
		cluster := *o
		cluster.Target = t
		records, unresolved := cluster.read(ctx)
		if records == nil {
			return unresolved
		}
		if err := t.AwaitTurn(ctx); err != nil {
			return err
		}
		discovered, o.records = true, append(o.records, records...)
		return unresolved
	})
	if !discovered || ctx.Err() != nil {
		return err
	}
	return errors.Join(err, o.print())
}

// read discovers the types of a cluster. It returns nil if that fails. Otherwise the error joins the errors
// of names that match nothing.
func (o *resourcesVerb) read(ctx context.Context) ([]typeRecord, error) {
	snapshot, err := o.discover(ctx)
	if err != nil {
		return nil, err
	}
	types, unresolved := o.selectTypes(snapshot)
	records := make([]typeRecord, 0, len(types))
	named := naming.Map(types, func(t discovery.Type) schema.GroupResource { return t.GroupResource })
	for _, t := range types {
		if !o.custom || t.Source == discovery.FromCRD {
			o.RecordUse(false, t.GroupResource)
			record := newTypeRecord(t, o.config.IndexNames(t))
			record.Cluster = o.Cluster
			records = append(records, record)
		}
	}
	if unresolved != nil { // an uncollected definition can have the name
		named = append(named, crd.GVR.GroupResource())
	}
	return records, errors.Join(o.FilesErr(o.types, named...), unresolved)
}

// discover runs a tracker until it has synced.
func (o *resourcesVerb) discover(ctx context.Context) (*discovery.Snapshot, error) {
	limitedCtx, cancel := o.WithTimeout(ctx)
	defer cancel()
	// A tracker retries. Catalog fails immediately if the server cannot be reached or denies access.
	if _, err := o.Catalog(limitedCtx); err != nil {
		return nil, err
	}
	tracker, err := o.Tracker()
	if err != nil {
		return nil, err
	}
	trackerCtx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { _ = tracker.Run(trackerCtx) }) // ended by stop; it fails only if called twice
	if err := tracker.WaitForSync(limitedCtx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, o.Explain(limitedCtx, err)
	}
	if tracker.Status().Mode == discovery.Polling && !o.ReadsFiles() {
		o.Warnf("cannot read CustomResourceDefinitions: only the information from discovery is listed")
	}
	return tracker.Snapshot(), nil
}

func (o *resourcesVerb) selectTypes(snapshot *discovery.Snapshot) ([]discovery.Type, error) {
	types := snapshot.Types()
	if len(o.types) == 0 {
		return types, session.UnknownGroups("", snapshot.Catalog().FailedGroupVersions())
	}
	var errs []error
	selected := map[schema.GroupResource]bool{}
	for _, name := range o.types {
		foundAny := addUnservedTypes(selected, types, name)
		resolution, err := snapshot.Catalog().Resolve(name)
		if err != nil && !foundAny {
			errs = append(errs, err)
		}
		errs = append(errs, session.UnknownGroups(name, resolution.FailedGroupVersions))
		for _, r := range resolution.Resources {
			selected[r.GVR.GroupResource()] = true
		}
		for _, skipped := range resolution.Skipped {
			selected[skipped.GVR.GroupResource()] = true
		}
	}
	types = slices.DeleteFunc(types, func(t discovery.Type) bool { return !selected[t.GroupResource] })
	return types, errors.Join(errs...)
}

// addUnservedTypes adds the types that match a name and are not served. The catalog does not contain them. It
// reports whether it added any.
func addUnservedTypes(selected map[schema.GroupResource]bool, types []discovery.Type, text string) bool {
	name, err := discovery.ParseName(text)
	if err != nil {
		return false // Resolve returns the same error
	}
	foundAny := false
	for _, t := range types {
		if t.Established && len(t.ServedVersions()) > 0 {
			continue
		}
		versions := naming.Texts(t.Versions, func(v discovery.TypeVersion) string { return v.Name })
		names := slices.Concat([]string{t.GroupResource.Resource, t.Singular, t.Kind},
			t.ShortNames, t.Categories)
		if session.MatchesName(name, t.GroupResource.Group, versions, names) {
			selected[t.GroupResource], foundAny = true, true
		}
	}
	return foundAny
}

type typeRecord struct {
	Cluster    string          `json:"cluster,omitempty"`
	Name       string          `json:"name"`
	Group      string          `json:"group"`
	Resource   string          `json:"resource"`
	Kind       string          `json:"kind"`
	Scope      string          `json:"scope"`
	State      string          `json:"state"`
	Source     string          `json:"source"`
	ShortNames []string        `json:"shortNames,omitempty"`
	Categories []string        `json:"categories,omitempty"`
	Versions   []versionRecord `json:"versions"`
	UID        string          `json:"uid,omitempty"`
	Indexes    []string        `json:"indexes,omitempty"`
}

type versionRecord struct {
	Name    string   `json:"name"`
	Served  bool     `json:"served"`
	Storage bool     `json:"storage,omitempty"`
	Verbs   []string `json:"verbs,omitempty"`
}

func newTypeRecord(t discovery.Type, indexes []string) typeRecord {
	return typeRecord{
		Name: t.GroupResource.String(), Group: t.GroupResource.Group, Resource: t.GroupResource.Resource,
		Kind: t.Kind, Scope: string(t.Scope), State: typeState(t), Source: string(t.Source),
		ShortNames: t.ShortNames, Categories: t.Categories, UID: string(t.UID), Indexes: indexes,
		Versions: naming.Map(t.Versions, func(v discovery.TypeVersion) versionRecord {
			return versionRecord{Name: v.Name, Served: v.Served, Storage: v.Storage, Verbs: v.Verbs}
		}),
	}
}

func typeState(t discovery.Type) string {
	switch {
	case t.Terminating:
		return "Terminating"
	case !t.Established:
		return "NotEstablished"
	case len(t.ServedVersions()) == 0:
		return "NotServed"
	case !slices.ContainsFunc(t.Versions, servesVerb("list")):
		return "NotListable"
	case !slices.ContainsFunc(t.Versions, servesVerb("watch")):
		return "NotWatchable"
	}
	return "Served"
}

func servesVerb(verb string) func(discovery.TypeVersion) bool {
	return func(v discovery.TypeVersion) bool { return v.Served && slices.Contains(v.Verbs, verb) }
}

func (o *resourcesVerb) print() error {
	streams := o.flags.Streams(o.streams)
	switch {
	case o.format == session.FormatJSON || o.format == session.FormatYAML:
		return session.WriteStructured(streams.Out, o.format, o.records)
	case len(o.records) == 0 && o.format != session.FormatName:
		fmt.Fprintln(streams.ErrOut, "No resources found")
		return nil
	}
	w := printers.GetNewTabWriter(streams.Out)
	if !o.noHeaders && o.format != session.FormatName {
		print.WriteRow(w, "", o.headers()...)
	}
	for _, r := range o.records {
		print.WriteRow(w, "<none>", o.cells(r)...)
	}
	return w.Flush()
}

func (o *resourcesVerb) headers() []string {
	headers := []string{"NAME", "KIND", "SCOPE", "VERSIONS", "STATE"}
	if o.targets[0].Cluster != "" {
		headers = slices.Insert(headers, 0, "CLUSTER")
	}
	if o.format == session.FormatWide {
		headers = append(headers, "SHORTNAMES", "CATEGORIES", "SOURCE")
	}
	if o.config.IsSet {
		headers = append(headers, "INDEXES")
	}
	return headers
}

func (o *resourcesVerb) cells(r typeRecord) []string {
	var cells []string
	if r.Cluster != "" {
		cells = append(cells, r.Cluster)
	}
	if o.format == session.FormatName {
		return append(cells, r.Name)
	}
	versions := make([]string, len(r.Versions))
	for i, v := range r.Versions {
		versions[i] = v.Name
		if !v.Served {
			versions[i] = "(" + v.Name + ")"
		}
	}
	cells = append(cells, r.Name, r.Kind, r.Scope, strings.Join(versions, ","), r.State)
	if o.format == session.FormatWide {
		cells = append(cells, strings.Join(r.ShortNames, ","), strings.Join(r.Categories, ","), r.Source)
	}
	if o.config.IsSet {
		cells = append(cells, strings.Join(r.Indexes, ","))
	}
	return cells
}
