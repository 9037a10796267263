package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
)

var resourcesFormats = []string{formatTable, formatWide, formatName, formatJSON, formatYAML}

type resourcesFlags struct {
	target    *session.ServerFlags
	configs   session.ConfigFlags
	output    string
	noHeaders bool
	custom    bool
}

func newResources(streams genericiooptions.IOStreams) *cobra.Command {
	f := &resourcesFlags{target: session.NewServerFlags()}
	cmd := &cobra.Command{
		Use:        "resources [TYPE...] [flags]",
		SuggestFor: []string{"api-resources", "types", "crds"},
		Short:      "List types with their versions and state",
		Long: "List the types that discovery and CustomResourceDefinitions know, with kind,\n" +
			"scope, versions and state. Without a TYPE, all types are listed. --config adds\n" +
			"the indexes of each type.\n\n" +
			"The preferred version comes first. Versions in parentheses are not served.",
		Example: "  crdcache resources '*.cert-manager.io'\n" +
			"  crdcache resources --custom --config indexes.yaml",
		ValidArgsFunction: f.target.CompleteTypes(true, nil),
		RunE:              newRunE(streams, f.toOptions),
	}
	set := cmd.Flags()
	f.target.Add(set)
	f.configs.Add(set)
	set.StringVarP(&f.output, "output", "o", formatTable, "Output format: table, wide, name, json or yaml.")
	set.BoolVar(&f.noHeaders, "no-headers", false, "Print the table without headers.")
	set.BoolVar(&f.custom, "custom", false, "List only types with a CustomResourceDefinition.")
	f.target.Complete(cmd)
	print.CompleteWords(cmd, "output", resourcesFormats)
	return cmd
}

// resourcesOptions are the validated flags and arguments of resources.
type resourcesOptions struct {
	genericiooptions.IOStreams
	target    *session.Target
	types     []string
	config    *session.Config
	format    string
	noHeaders bool
	custom    bool
}

func (f *resourcesFlags) toOptions(cmd *cobra.Command, args []string,
	streams genericiooptions.IOStreams) (*resourcesOptions, error) {
	streams = f.target.Streams(streams)
	if err := print.OneOf("output format", f.output, resourcesFormats); err != nil {
		return nil, err
	}
	types, err := session.SplitTypes(args)
	if err != nil {
		return nil, err
	}
	o := &resourcesOptions{IOStreams: streams, types: types, format: f.output, noHeaders: f.noHeaders,
		custom: f.custom}
	if o.config, err = f.configs.Load(o.warn); err != nil {
		return nil, err
	}
	if o.config.IsSet && f.output == formatName {
		return nil, exit.Usagef("--config and --output name cannot be used together: names have no indexes")
	}
	o.target, err = f.target.Target(cmd.Context(), streams)
	return o, err
}

func (o *resourcesOptions) warn(text string) { fmt.Fprintf(o.ErrOut, "warning: %s\n", text) }

// run discovers the types and prints them. The error joins the errors of names that match nothing.
func (o *resourcesOptions) run(ctx context.Context) error {
	snapshot, err := o.discover(ctx)
	if err != nil {
		return err
	}
	types, unresolved := o.selectTypes(snapshot)
	records := make([]typeRecord, 0, len(types))
	for _, t := range types {
		if !o.custom || t.Source == discovery.FromCRD {
			o.target.RecordUse(t.GroupResource)
			records = append(records, newTypeRecord(t, o.config.ForType(t)))
		}
	}
	return errors.Join(o.target.Err(), unresolved, o.print(records))
}

// discover runs a tracker until it has synced.
func (o *resourcesOptions) discover(ctx context.Context) (*discovery.Snapshot, error) {
	limitedCtx, cancel := o.target.Limit(ctx)
	defer cancel()
	// A tracker retries. Catalog fails immediately if the server cannot be reached or denies access.
	if _, err := o.target.Catalog(limitedCtx); err != nil {
		return nil, err
	}
	tracker, err := o.target.Tracker()
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { // ended by stop
		defer close(ended)
		_ = tracker.Run(running) // it fails only if called twice
	}()
	defer func() {
		stop()
		<-ended
	}()
	if err := tracker.WaitForSync(limitedCtx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, o.target.Explain(limitedCtx, err)
	}
	status := tracker.Status()
	if status.Mode == discovery.Polling {
		fmt.Fprintf(o.ErrOut, "warning: cannot read CustomResourceDefinitions: only the information from discovery is listed\n")
	}
	for _, failed := range status.FailedGroupVersions {
		fmt.Fprintf(o.ErrOut, "warning: %s may have types that could not be discovered: %v\n",
			failed.GroupVersion, failed.Err)
	}
	return tracker.Snapshot(), nil
}

// selectTypes returns the named types, or all.
func (o *resourcesOptions) selectTypes(snapshot *discovery.Snapshot) ([]discovery.Type, error) {
	types := snapshot.Types()
	if len(o.types) == 0 {
		return types, nil
	}
	var errs []error
	requested := map[schema.GroupResource]bool{}
	for _, name := range o.types {
		found := addUnserved(requested, types, name)
		resolution, err := snapshot.Catalog().Resolve(name)
		if err != nil && !found {
			errs = append(errs, err)
		}
		for _, r := range resolution.Resources {
			requested[r.GVR.GroupResource()] = true
		}
		for _, skipped := range resolution.Skipped {
			requested[skipped.GVR.GroupResource()] = true
		}
	}
	types = slices.DeleteFunc(types, func(t discovery.Type) bool { return !requested[t.GroupResource] })
	return types, errors.Join(errs...)
}

// addUnserved adds the types that match a name and are not served, which the catalog does not contain. It
// reports whether there are any.
func addUnserved(requested map[schema.GroupResource]bool, types []discovery.Type, text string) bool {
	name, err := discovery.ParseName(text)
	if err != nil {
		return false // Resolve returns the same error
	}
	found := false
	for _, t := range types {
		if t.Established && len(t.ServedVersions()) > 0 {
			continue
		}
		versions := make([]string, len(t.Versions))
		for i, v := range t.Versions {
			versions[i] = v.Name
		}
		names := slices.Concat([]string{t.GroupResource.Resource, t.Singular, t.Kind},
			t.ShortNames, t.Categories)
		if slices.ContainsFunc(name.Interpretations,
			func(r discovery.Interpretation) bool {
				return r.Matches(t.GroupResource.Group,
					versions, names)
			}) {
			requested[t.GroupResource], found = true, true
		}
	}
	return found
}

// typeRecord is the JSON and YAML form of a type.
type typeRecord struct {
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

// States of a type.
const (
	stateServed         = "Served"
	stateNotEstablished = "NotEstablished"
	stateTerminating    = "Terminating"
	stateNotServed      = "NotServed"
	stateNotWatchable   = "NotWatchable"
)

func newTypeRecord(t discovery.Type, indexes []string) typeRecord {
	r := typeRecord{
		Name: t.GroupResource.String(), Group: t.GroupResource.Group, Resource: t.GroupResource.Resource,
		Kind: t.Kind, Scope: string(t.Scope), State: typeState(t), Source: string(t.Source),
		ShortNames: t.ShortNames, Categories: t.Categories, UID: string(t.UID), Indexes: indexes,
	}
	for _, v := range t.Versions {
		r.Versions = append(r.Versions, versionRecord{Name: v.Name, Served: v.Served, Storage: v.Storage,
			Verbs: v.Verbs})
	}
	return r
}

func typeState(t discovery.Type) string {
	switch {
	case t.Terminating:
		return stateTerminating
	case !t.Established:
		return stateNotEstablished
	case len(t.ServedVersions()) == 0:
		return stateNotServed
	case !slices.ContainsFunc(t.Versions, isWatchable):
		return stateNotWatchable
	}
	return stateServed
}

func isWatchable(v discovery.TypeVersion) bool {
	return v.Served && slices.Contains(v.Verbs, "list") && slices.Contains(v.Verbs, "watch")
}

func (o *resourcesOptions) print(records []typeRecord) error {
	switch o.format {
	case formatJSON, formatYAML:
		return writeStructured(o.Out, o.format, records)
	case formatName:
		for _, r := range records {
			if _, err := fmt.Fprintln(o.Out, print.Printable(r.Name)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(records) == 0 {
		fmt.Fprintln(o.ErrOut, "No resources found")
		return nil
	}
	return o.printTable(records)
}

func (o *resourcesOptions) printTable(records []typeRecord) error {
	w := printers.GetNewTabWriter(o.Out)
	if !o.noHeaders {
		writeRow(w, o.headers()...)
	}
	for _, r := range records {
		writeRow(w, o.cells(r)...)
	}
	return w.Flush()
}

func (o *resourcesOptions) headers() []string {
	headers := []string{"NAME", "KIND", "SCOPE", "VERSIONS", "STATE"}
	if o.format == formatWide {
		headers = append(headers, "SHORTNAMES", "CATEGORIES", "SOURCE")
	}
	if o.config.IsSet {
		headers = append(headers, "INDEXES")
	}
	return headers
}

func (o *resourcesOptions) cells(r typeRecord) []string {
	versions := make([]string, len(r.Versions))
	for i, v := range r.Versions {
		versions[i] = v.Name
		if !v.Served {
			versions[i] = "(" + v.Name + ")"
		}
	}
	cells := []string{r.Name, r.Kind, r.Scope, strings.Join(versions, ","), r.State}
	if o.format == formatWide {
		cells = append(cells, strings.Join(r.ShortNames, ","), strings.Join(r.Categories, ","), r.Source)
	}
	if o.config.IsSet {
		cells = append(cells, strings.Join(r.Indexes, ","))
	}
	return cells
}

// writeRow writes a table row. The tab writer keeps the first error for Flush.
func writeRow(w io.Writer, cells ...string) {
	for i, cell := range cells {
		if cells[i] = print.Printable(cell); cells[i] == "" {
			cells[i] = "<none>"
		}
	}
	fmt.Fprintln(w, strings.Join(cells, "\t"))
}
