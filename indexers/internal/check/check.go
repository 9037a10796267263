package indexers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
)

// Check compares all resources with the definitions of custom resources, from a cluster or from
// files: that they exist, and that their schemas have the fields that paths and conditions name. The
// error is a [*ConfigError] with everything that is wrong. What the schema leaves open, and what no
// CRD defines because it is optional or built into Kubernetes, is a warning.
func (c *Config) Check(definitions []*crd.Definition) (warnings []Diagnostic, err error) {
	return c.check(definitions, false)
}

// CheckCluster is [Config.Check] with all definitions that a cluster has: it says what the cluster lacks.
func (c *Config) CheckCluster(definitions []*crd.Definition) (warnings []Diagnostic, err error) {
	return c.check(definitions, true)
}

func (c *Config) check(definitions []*crd.Definition, cluster bool) (warnings []Diagnostic, err error) {
	var all []Diagnostic
	for _, r := range c.Resources {
		k := checking{resource: r, file: r.file, cluster: cluster, report: func(d Diagnostic) {
			if !slices.Contains(all, d) {
				all = append(all, d)
			}
		}}
		start := len(all)
		k.check(definitions)
		slices.SortStableFunc(all[start:], func(a, b Diagnostic) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
	}
	return divide(all)
}

// checking compares one resource, or one condition of a query.
type checking struct {
	resource *Resource // nil for a query
	cluster  bool      // the definitions are those of a cluster
	file     *file
	report   func(Diagnostic)
	name     string // of the type, for people: certificates.cert-manager.io/v1
	at       origin // of the expression that is being checked
	whole    bool   // it is the path of an index, from the top of the object
}

func (k *checking) fail(code Code, at place, message, hint string) {
	k.report(k.file.diagnostic(code, at, message, hint))
}

// expression is the place of the whole expression that is being checked.
func (k *checking) expression() place {
	return k.at.place(k.file, 0, 0, len(k.at.node.Value))
}

func (k *checking) check(definitions []*crd.Definition) {
	for _, d := range k.definitions(definitions) {
		k.definition(d)
	}
}

// definition compares the resource with one CRD that it means.
func (k *checking) definition(d *crd.Definition) {
	version, ok := k.version(d)
	if !ok {
		return
	}
	k.name = typeName(d, version)
	if version.Schema == nil {
		k.fail(CodeNoSchema, k.resource.matchAt.name, k.name+" has no schema", "its paths are not checked")
		return
	}
	root := withMetadata(version.Schema)
	for _, index := range k.resource.Indexes {
		k.index(index, root)
	}
}

// typeName is a version of a type, for people.
func typeName(d *crd.Definition, version crd.Version) string {
	return d.GroupResource().String() + "/" + version.Name
}

// definitions finds the CRDs of the resource, and reports when there are none.
func (k *checking) definitions(definitions []*crd.Definition) []*crd.Definition {
	m := k.resource.Match
	var found []*crd.Definition
	var inGroup, groups []string
	for _, d := range definitions {
		groups = append(groups, d.Group)
		if m.Matches(d.Group, d.Names.Plural, d.Names.Kind) {
			found = append(found, d)
			continue
		}
		if d.Group != m.Group {
			continue
		}
		if m.Kind != "" {
			inGroup = append(inGroup, d.Names.Kind)
		} else {
			inGroup = append(inGroup, d.Names.Plural)
		}
	}
	if len(found) > 0 {
		return found
	}
	at, asked := k.resource.matchAt.name, m.Resource+m.Kind
	message, hint := k.absent(schema.GroupResource{Group: m.Group, Resource: asked}.String())
	switch near := nearest(asked, inGroup); {
	case m.Pattern(): // there are no names near a pattern
	case near != "":
		hint = fmt.Sprintf("did you mean %q?", near)
	case len(inGroup) > 0:
		hint = fmt.Sprintf("the group has %s", strings.Join(slices.Sorted(slices.Values(inGroup)), ", "))
	case builtIn(m.Group):
		k.fail(CodeBuiltIn, at, fmt.Sprintf("%s is built into Kubernetes", schema.GroupResource{Group: m.Group, Resource: asked}), "its paths are not checked")
		return nil
	default:
		if near := nearest(m.Group, groups); near != "" {
			at, hint = k.resource.matchAt.group, fmt.Sprintf("did you mean the group %q?", near)
		}
	}
	if k.resource.Optional {
		k.fail(CodeOptionalGone, at, message, "its paths are not checked")
	} else {
		k.fail(CodeNoResource, at, message, hint)
	}
	return nil
}

// absent says that there is no CRD of the resource, and the way out if none is known to be nearer.
func (k *checking) absent(name string) (message, hint string) {
	switch pattern := k.resource.Match.Pattern(); {
	case pattern && k.cluster:
		return "no CRD of the cluster fits " + name, "correct the pattern, or write optional: true if there may be none"
	case pattern:
		return "no given CRD fits " + name, "correct the pattern, or write optional: true if there may be none"
	case k.cluster:
		return name + " is not in the cluster", "correct its name, or write optional: true if it may be installed later"
	}
	return name + " is not in the given CRDs", "give the CRD of the resource too, or correct its name"
}

// builtIn tells the groups of Kubernetes itself: those without a dot, and below k8s.io. CRDs may be
// below k8s.io too, and are found before this is asked.
func builtIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// version gives the version that is meant, and reports one that is not served.
func (k *checking) version(d *crd.Definition) (crd.Version, bool) {
	served := d.ServedVersions()
	wanted := k.resource.Match.Version
	if wanted == "" && len(served) > 0 {
		wanted = served[0]
	}
	if slices.Contains(served, wanted) {
		return d.Version(wanted)
	}
	at := k.resource.matchAt.version
	if k.resource.Match.Version == "" {
		at = k.resource.matchAt.name
	}
	hint := "it serves no version at all"
	if len(served) > 0 {
		hint = "it serves " + strings.Join(served, ", ")
	}
	k.fail(CodeNoVersion, at, fmt.Sprintf("%s does not serve version %q", d.GroupResource(), wanted), hint)
	return crd.Version{}, false
}

func (k *checking) index(index *Index, root *crd.Schema) {
	top := []cursor{{schema: root}}
	if index.when != nil {
		k.at = index.whenAt
		k.condition(index.when, top)
	}
	if index.each != nil {
		k.at = index.eachAt
		top = k.walk(index.each.Steps(), top)
	}
	for _, p := range index.parts {
		k.at, k.whole = p.at, index.each == nil
		ends := k.walk(p.path.Steps(), top)
		k.indexable(ends)
		k.whole = false
		k.typed(index, p, ends)
	}
}

// indexable reports a path that can only end at lists or maps.
func (k *checking) indexable(ends []cursor) {
	for _, e := range ends {
		if !e.isList() && !e.isMap() {
			return
		}
	}
	if len(ends) == 0 {
		return
	}
	e := ends[0]
	what, hint := "a map", "name one of its fields, or add .* for all values"
	if e.isList() {
		what, hint = "a list", "add [*] for all elements"
	}
	k.fail(CodeNotIndexable, k.expression(), fmt.Sprintf("%s is %s, and indexes hold text, numbers and booleans", e.name(), what), hint)
}
