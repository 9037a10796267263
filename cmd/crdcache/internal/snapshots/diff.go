package snapshots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/snapshot"
)

// Arguments that select a cluster instead of files.
const (
	livePath      = "live"     // the cluster of the flags
	contextPrefix = "context:" // before the name of a context
)

type diffVerb struct {
	genericiooptions.IOStreams
	flags  session.ServerFlags
	format string
	ignore []string
	color  session.ColorFlag

	sources   [2]diffSource // before and after
	types     []string
	namespace string // empty for all namespaces of both
}

// diffSource is a cluster, or files that --from reads.
type diffSource struct {
	name   string // as on the command line
	target *session.Target
}

// isManifests reports whether a source is files other than a snapshot. Types that they lack are unknown.
func (s diffSource) isManifests() bool { return s.target.ReadsFiles() && s.target.Snapshot() == nil }

func NewDiff(streams genericiooptions.IOStreams) *cobra.Command {
	o := &diffVerb{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "diff SOURCE SOURCE [TYPE...] [flags]",
		Short: "Compare clusters, snapshots and files",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return session.Usagef("name two sources, as in '%s before.snapshot %s'", cmd.CommandPath(), livePath)
			}
			return nil
		},
		RunE: session.RunE(o.complete, o.run),
	}
	o.flags.AddWithoutFrom(cmd)
	session.AddOutput(cmd, &o.format, session.FormatText, session.FormatJSON, session.FormatYAML)
	cmd.Flags().StringSliceVar(&o.ignore, "ignore", nil, "")
	o.color.Add(cmd)
	session.CompleteValues(cmd, "ignore", []string{"status"})
	files := o.flags.CompleteFileAndTypes(2)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string,
		toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) < 2 && toComplete != "" && strings.HasPrefix(livePath, toComplete) {
			return []string{livePath}, cobra.ShellCompDirectiveDefault
		}
		return files(cmd, args, toComplete)
	}
	return cmd
}

func (o *diffVerb) complete(cmd *cobra.Command, args []string) (err error) {
	set := cmd.Flags()
	o.IOStreams = o.flags.Streams(o.IOStreams)
	if o.format != session.FormatText && set.Changed("color") {
		return session.Usagef("--color needs text output: omit --output %s", o.format)
	}
	if o.namespace, err = set.GetString("namespace"); err != nil {
		return err
	}
	if err := o.setSources(cmd.Context(), args); err != nil {
		return err
	}
	if o.types, err = session.SplitTypes(args[2:]); err != nil {
		return err
	}
	for _, field := range o.ignore {
		if field != "status" && !strings.HasPrefix(field, ".") {
			return session.Usagef("--ignore takes status or a path, as in .spec.replicas; got %q", field)
		}
	}
	if err := newIgnoredFields(o.ignore).prune.Validate(); err != nil {
		return session.Usagef("--ignore: %v", err)
	}
	return nil
}

// setSources sets the sources from the first two arguments.
func (o *diffVerb) setSources(ctx context.Context, args []string) (err error) {
	for i := range o.sources {
		source := &o.sources[i]
		source.name = args[i]
		if context, ok := strings.CutPrefix(source.name, contextPrefix); ok {
			source.target, err = o.flags.ContextTarget(ctx, o.IOStreams, context)
		} else if source.name == livePath {
			source.target, err = o.flags.Target(ctx, o.IOStreams)
		} else {
			source.target, err = o.flags.FileTarget(ctx, o.IOStreams, source.name)
		}
		if err != nil {
			return &session.ComparisonError{Cause: err}
		}
	}
	if o.sources[0].target.ReadsFiles() && o.sources[1].target.ReadsFiles() {
		return o.flags.RejectSourceFlags("between files")
	}
	return nil
}

type snapshotDifference struct {
	Before string           `json:"before"`
	After  string           `json:"after"`
	Types  []typeDifference `json:"types"`
	// NotCompared are types that one of the sources lacks.
	NotCompared []uncomparedType `json:"notCompared,omitempty"`
}

type uncomparedType struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	// err is set if the comparison is incomplete.
	err error
}

func (o *diffVerb) run(ctx context.Context) error {
	different, err := o.compare(ctx)
	switch {
	case err != nil:
		return &session.ComparisonError{Cause: err}
	case different:
		return session.ErrDifferencesFound
	}
	return nil
}

func (o *diffVerb) compare(ctx context.Context) (different bool, err error) {
	comparison := &snapshotComparison{ignoredPaths: o.ignoredFields(), namespace: o.namespace}
	defer comparison.close()
	if err := o.open(ctx, comparison); err != nil {
		return false, err
	}
	if err := o.checkNamespace(comparison); err != nil {
		return false, err
	}
	types, uncompared, err := o.comparedTypes(comparison)
	if err != nil {
		return false, err
	}
	if len(types)+len(uncompared) == 0 {
		return false, fmt.Errorf("nothing was compared: neither %s nor %s has a type to compare",
			o.sources[0].name, o.sources[1].name)
	}
	differences := snapshotDifference{Before: o.sources[0].name, After: o.sources[1].name,
		Types: []typeDifference{}, NotCompared: uncompared}
	for _, gr := range types {
		difference, err := comparison.compareType(ctx, gr)
		if err != nil {
			return false, err
		}
		if len(difference.Added)+len(difference.Removed)+len(difference.Changed) > 0 {
			differences.Types = append(differences.Types, difference)
		}
	}
	if err := o.print(differences); err != nil {
		return false, err
	}
	var errs []error
	for _, m := range uncompared {
		if m.err != nil {
			errs = append(errs, session.Incompletef("%s is not compared: %v", m.Type, m.err))
		}
	}
	for _, source := range o.sources {
		source.target.RecordUse(true, types...)
		errs = append(errs, source.target.FilesErr(o.types, types...))
	}
	return len(differences.Types) > 0, session.JoinDistinct(errs...)
}

// checkNamespace limits the comparison to the namespace of a snapshot that has only one.
func (o *diffVerb) checkNamespace(comparison *snapshotComparison) error {
	for i, f := range comparison.files {
		switch savedNamespace := f.Contents().Namespace; {
		case savedNamespace == "":
		case comparison.namespace == "":
			comparison.namespace = savedNamespace
		case comparison.namespace != savedNamespace:
			return session.Usagef("cannot compare the namespace %s: %s contains only the namespace %s; use snapshots of the same namespace",
				comparison.namespace, o.sources[i].name, savedNamespace)
		}
	}
	return nil
}

// comparedTypes returns the types to compare, and the types that one of the sources lacks.
func (o *diffVerb) comparedTypes(comparison *snapshotComparison) (types []schema.GroupResource,
	uncompared []uncomparedType, err error) {
	requested, err := o.requestedTypes(comparison)
	if err != nil {
		return nil, nil, err
	}
	for _, gr := range savedTypes(comparison.files[:]...) {
		if requested != nil && !requested[gr] ||
			requested == nil && (session.IsEvents(gr) || o.lacksDefinitions(comparison, gr)) {
			continue
		}
		if reason, ok := o.whyUncompared(comparison, gr, requested != nil); ok {
			uncompared = append(uncompared, reason)
		} else {
			types = append(types, gr)
		}
	}
	if requested == nil {
		uncompared = append(uncompared, o.uncomparedGroups(comparison)...)
	}
	return types, uncompared, nil
}

// lacksDefinitions reports whether gr defines types and a source is manifests without such objects, compared
// with a cluster or a snapshot, which always have them.
func (o *diffVerb) lacksDefinitions(comparison *snapshotComparison, gr schema.GroupResource) bool {
	for i, f := range comparison.files {
		if o.sources[i].isManifests() && !o.sources[1-i].isManifests() && f.Objects(gr) == nil {
			return gr == apiServices || gr == crd.GVR.GroupResource()
		}
	}
	return false
}

// whyUncompared returns the reason if one of the sources does not know the objects of a type.
func (o *diffVerb) whyUncompared(comparison *snapshotComparison, gr schema.GroupResource,
	isRequested bool) (reason uncomparedType, ok bool) {
	versions := [2]string{}
	for i, f := range comparison.files {
		objects := f.Objects(gr)
		if objects == nil {
			err := o.unknownGroups(i, f, gr.Group)
			if err == nil && o.sources[i].isManifests() {
				err = fmt.Errorf("%s has neither objects nor the definition of the type", o.sources[i].name)
			}
			if err != nil {
				return uncomparedType{gr.String(), err.Error(), err}, true
			}
			continue
		}
		saved := objects.Type()
		if versions[i] = saved.Version; saved.Missing != nil && (!saved.NotRequested || reason.Type == "") {
			reason = uncomparedType{Type: gr.String(), Message: saved.Missing.Message}
			if !saved.NotRequested || isRequested {
				reason.err = errors.New(reason.Message)
			}
		}
	}
	if reason.Type != "" {
		return reason, true
	}
	if versions[0] != versions[1] && versions[0] != "" && versions[1] != "" {
		print.Warnf(o.ErrOut, "%s: %s of %s is compared with %s of %s", gr, versions[0], o.sources[0].name,
			versions[1], o.sources[1].name)
	}
	return reason, false
}

// unknownGroups returns an error if a source could not discover a group, or any group if group is "*".
func (o *diffVerb) unknownGroups(source int, f *snapshot.File, group string) error {
	var failures []discovery.GroupFailure
	for _, unknown := range f.Contents().UnknownGroups {
		if group == "*" || unknown.Group == group || unknown.Group == snapshot.AllGroups {
			failures = append(failures, discovery.GroupFailure{Err: errors.New(unknown.Reason),
				GroupVersion: schema.GroupVersion{Group: unknown.Group, Version: unknown.Version}})
		}
	}
	return session.UnknownGroups(o.sources[source].name, failures)
}

// uncomparedGroups returns the unknown groups of which neither source has a type.
func (o *diffVerb) uncomparedGroups(comparison *snapshotComparison) (groups []uncomparedType) {
	saved := savedTypes(comparison.files[:]...)
	for i, f := range comparison.files {
		for _, unknown := range f.Contents().UnknownGroups {
			if name := "*." + unknown.Group; !slices.ContainsFunc(saved,
				func(gr schema.GroupResource) bool { return gr.Group == unknown.Group }) &&
				!slices.ContainsFunc(groups, func(u uncomparedType) bool { return u.Type == name }) {
				err := o.unknownGroups(i, f, unknown.Group)
				groups = append(groups, uncomparedType{name, err.Error(), err})
			}
		}
	}
	return groups
}

// savedTypes returns the types that were requested when one of the files was saved, sorted by group.
func savedTypes(files ...*snapshot.File) []schema.GroupResource {
	var types []schema.GroupResource
	for _, f := range files {
		for _, saved := range f.Contents().Types {
			gr := saved.GVR().GroupResource()
			if !saved.NotRequested && !slices.Contains(types, gr) {
				types = append(types, gr)
			}
		}
	}
	slices.SortFunc(types, func(a, b schema.GroupResource) int {
		return strings.Compare(a.Group+"/"+a.Resource, b.Group+"/"+b.Resource)
	})
	return types
}

// requestedTypes resolves the named types by the names in the snapshots. Nil means all types.
func (o *diffVerb) requestedTypes(comparison *snapshotComparison) (map[schema.GroupResource]bool, error) {
	if len(o.types) == 0 {
		return nil, nil
	}
	requested := map[schema.GroupResource]bool{}
	for _, text := range o.types {
		name, err := discovery.ParseName(text)
		if err != nil {
			return nil, session.Usagef("%v", err)
		}
		found := false
		for _, f := range comparison.files {
			for _, saved := range f.Contents().Types {
				names := slices.Concat([]string{saved.Resource, saved.Singular, saved.Kind}, saved.ShortNames,
					saved.Categories)
				if session.MatchesName(name, saved.Group, append(saved.Versions, saved.Version), names) {
					requested[saved.GVR().GroupResource()], found = true, true
				}
			}
		}
		if !found {
			for i, f := range comparison.files {
				err := o.sources[i].target.FilesErr([]string{text}, crd.GVR.GroupResource())
				if err = cmp.Or(err, o.unknownGroups(i, f, "*")); err != nil {
					return nil, fmt.Errorf("cannot find the type %q: %w", text, err)
				}
			}
			return nil, fmt.Errorf("neither %s nor %s has a type %q", o.sources[0].name, o.sources[1].name, text)
		}
	}
	return requested, nil
}

func (o *diffVerb) print(differences snapshotDifference) error {
	if o.format != session.FormatText {
		return session.WriteStructured(o.Out, o.format, differences)
	}
	for _, m := range differences.NotCompared {
		if m.err == nil {
			print.Warnf(o.ErrOut, "%s is not compared: %s", m.Type, m.Message)
		}
	}
	return print.WriteControl(o.Out, differences.text(o.color.Enabled(o.Out)))
}

// text is the output for people. It is empty without differences, as in diff.
func (d snapshotDifference) text(color bool) string {
	var b strings.Builder
	for _, t := range d.Types {
		fmt.Fprintf(&b, "%s: %d added, %d removed, %d changed\n", print.Printable(t.Type), len(t.Added),
			len(t.Removed), len(t.Changed))
		writeLine := func(sign, key string, lineColor print.Color) {
			text := sign + " " + print.Printable(key)
			if color {
				text = print.Colorize(text, lineColor)
			}
			b.WriteString(text + "\n")
		}
		for _, key := range t.Added {
			writeLine("+", key, print.Green)
		}
		for _, key := range t.Removed {
			writeLine("-", key, print.Red)
		}
		for _, o := range t.Changed {
			writeLine("~", o.Key, print.Yellow)
			b.WriteString(print.ChangesText(o.changes, color))
		}
	}
	return b.String()
}
