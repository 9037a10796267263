package indexers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/builtin"
)

// Check compares all resources with CustomResourceDefinitions from a cluster or from files: they must exist,
// and their schemas must have the fields of all paths and conditions. The error is a [*ConfigError] with all
// findings. Fields that a schema leaves open, and missing types that are optional or built into Kubernetes,
// are warnings.
func (c *Config) Check(definitions []*crd.Definition) (warnings []Diagnostic, err error) {
	return splitFindings(checkResources(c.Resources, definitions, false))
}

// CheckOptions control [CheckSources].
type CheckOptions struct {
	// Definitions returns the CustomResourceDefinitions to compare with. It is called with the groups of all
	// resources that could be parsed, and of their reference targets; a group can be a pattern.
	Definitions func(groups []string) ([]*crd.Definition, error)
	// Cluster means that Definitions returns all definitions of a cluster.
	Cluster bool
}

// CheckSources combines [Parse] and [Config.Check] and reports all findings together, including findings of
// Check about the valid resources of an invalid config. The returned config has the warnings of both. The
// error is a [*ConfigError], joined with the error of Definitions, in which case nothing was compared.
func CheckSources(options CheckOptions, sources ...Source) (*Config, error) {
	resources, findings := load(sources)
	var groups []string
	for _, r := range resources {
		groups = append(groups, r.Match.Group)
		for _, reference := range r.References {
			if t, ok := targetOf(reference); ok {
				groups = append(groups, t.Group)
			}
		}
	}
	definitions, err := options.Definitions(groups)
	if err != nil {
		if _, configErr := splitFindings(findings); configErr != nil {
			return nil, errors.Join(configErr, err)
		}
		return nil, err
	}
	type place struct{ file, line, column int }
	placeOf := func(f Diagnostic) place { return place{f.fileNumber, f.Line, f.Column} }
	reported := map[place]bool{} // report only one finding for one cause
	for _, f := range findings {
		reported[placeOf(f)] = reported[placeOf(f)] || !f.isWarning()
	}
	for _, f := range checkResources(resources, definitions, options.Cluster) {
		if !reported[placeOf(f)] {
			findings = append(findings, f)
		}
	}
	sortDiagnostics(findings)
	return newConfig(resources, findings)
}

// checkResources compares resources with CustomResourceDefinitions and returns findings in the order of the
// resources. cluster means that the definitions are all of a cluster.
func checkResources(resources []*Resource, definitions []*crd.Definition, cluster bool) []Diagnostic {
	var findings []Diagnostic
	for _, r := range resources {
		k := checker{resource: r, file: r.file, hasWholeCluster: cluster, report: func(f Diagnostic) {
			if !slices.Contains(findings, f) {
				findings = append(findings, f)
			}
		}}
		start := len(findings)
		k.check(definitions)
		k.checkTargets(definitions)
		sortDiagnostics(findings[start:])
	}
	return findings
}

// checker checks one resource of a config, or one condition or column of a query.
type checker struct {
	resource        *Resource // nil for a query
	hasWholeCluster bool      // the definitions are complete
	file            *sourceFile
	report          func(Diagnostic)
	name            string // the type in messages: certificates.cert-manager.io/v1
	origin          origin // the expression being checked
}

func (k *checker) fail(code Code, at position, message, hint string) {
	k.report(k.file.finding(code, at, message, hint))
}

// position returns the position of the whole expression being checked.
func (k *checker) position() position {
	return k.origin.position(k.file, 0, 0, len(k.origin.node.Value))
}

func (k *checker) check(definitions []*crd.Definition) {
	if k.resource.Match.Resource+k.resource.Match.Kind == "" {
		return // reported by the decoder
	}
	matching := k.findDefinitions(definitions)
	if !k.resource.Match.Pattern() || len(matching) < 2 {
		for _, d := range matching {
			k.checkDefinition(d)
		}
		return
	}
	k.checkEach(matching)
}

// checkEach checks the resource against each type that a pattern matches. A field that only some types lack
// is a warning.
func (k *checker) checkEach(matching []*crd.Definition) {
	report := k.report
	defer func() { k.report = report }()
	var found []Diagnostic
	lacking := map[position]int{} // number of types
	for _, d := range matching {
		reported := map[position]bool{}
		k.report = func(f Diagnostic) {
			found = append(found, f)
			if !f.isWarning() {
				reported[f.position()] = true
			}
		}
		k.checkDefinition(d)
		for at := range reported {
			lacking[at]++
		}
	}
	for _, f := range found {
		if !f.isWarning() && lacking[f.position()] < len(matching) {
			f.Code, f.Hint = codeFieldNotInAllTypes,
				fmt.Sprintf("%d of the %d types that the pattern matches have it; the index has no values of the others", len(matching)-lacking[f.position()], len(matching))
		}
		report(f)
	}
}

// checkDefinition checks the resource against one CRD.
func (k *checker) checkDefinition(d *crd.Definition) {
	version, ok := k.findVersion(d)
	if !ok {
		return
	}
	k.name = typeName(d, version)
	if version.Schema == nil {
		k.fail(codeNoSchema, k.resource.positions.name, k.name+" has no schema", "its paths are not checked")
		return
	}
	k.checkFieldSelector(version)
	root := withMetadata(version.Schema)
	for _, index := range k.resource.allIndexes() {
		k.checkIndex(index, root)
	}
	if k.resource.wholeCondition != nil {
		k.checkIndex(k.resource.wholeCondition, root)
	}
}

// typeName formats a version of a type for messages.
func typeName(d *crd.Definition, version crd.Version) string {
	return d.GroupResource().String() + "/" + version.Name
}

// findDefinitions returns the CRDs of the resource, and reports if there are none.
func (k *checker) findDefinitions(all []*crd.Definition) []*crd.Definition {
	m := k.resource.Match
	var found []*crd.Definition
	var inGroup, groups []string
	for _, d := range all {
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
	at, requested := k.resource.positions.name, m.Resource+m.Kind
	message, hint := k.missingCRD(schema.GroupResource{Group: m.Group, Resource: requested}.String())
	switch {
	case m.Pattern(): // no suggestions for a pattern
	case len(inGroup) > 0:
		hint = didYouMean(requested, inGroup, "the group has "+joinSorted(inGroup))
	case isBuiltInGroup(m.Group):
		name := schema.GroupResource{Group: m.Group, Resource: requested}.String()
		suggestion, isWrong := isUnknownBuiltInType(m)
		if !isWrong {
			k.fail(codeBuiltIn, at, name+" is built into Kubernetes", "its paths are not checked")
			return nil
		}
		message, hint = name+" is not a Kubernetes type that can be listed and watched", suggestion
	default:
		if suggestion := nearestSpelling(m.Group, groups); suggestion != "" {
			at, hint = k.resource.positions.group, fmt.Sprintf("did you mean the group %q?", suggestion)
		}
	}
	if k.resource.Optional {
		k.fail(codeOptionalMissing, at, message, "its paths are not checked")
	} else {
		k.fail(codeNoResource, at, message, hint)
	}
	return nil
}

// isUnknownBuiltInType reports whether the type of a built-in group is a mistake. The core group cannot be
// extended; in other groups, the name is taken for a misspelling if it is similar to a built-in name. hint is
// the remedy.
func isUnknownBuiltInType(m Match) (hint string, isWrong bool) {
	if _, ok := builtin.Find(m.Group, m.Kind, m.Resource); ok {
		return "", false
	}
	var names []string
	for _, t := range builtin.Types {
		switch {
		case t.Group != m.Group:
		case m.Kind != "":
			names = append(names, t.Kind)
		default:
			names = append(names, t.Plural)
		}
	}
	const unlike = "correct its name"
	hint = didYouMean(m.Kind+m.Resource, names, unlike)
	return hint, hint != unlike || m.Group == ""
}

// joinSorted joins the distinct names in alphabetical order.
func joinSorted(names []string) string { return strings.Join(sets.List(sets.New(names...)), ", ") }

// missingCRD returns the message and the default hint for a resource without CRD.
func (k *checker) missingCRD(name string) (message, hint string) {
	switch pattern := k.resource.Match.Pattern(); {
	case pattern && k.hasWholeCluster:
		return "no CRD of the cluster fits " + name,
			"correct the pattern, or write optional: true if there may be none"
	case pattern:
		return "no given CRD fits " + name,
			"correct the pattern, or write optional: true if there may be none"
	case k.hasWholeCluster:
		return name + " is not in the cluster",
			"correct its name, or write optional: true if it may be installed later"
	}
	return name + " is not in the given CRDs", "give the CRD of the resource too, or correct its name"
}

// isBuiltInGroup reports whether a group belongs to Kubernetes: it has no dot or is below k8s.io. Some CRDs
// are below k8s.io, too; the caller has looked for them before.
func isBuiltInGroup(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

// findVersion returns the matching version, and reports one that is not served.
func (k *checker) findVersion(d *crd.Definition) (crd.Version, bool) {
	served := d.ServedVersions()
	requested := k.resource.Match.Version
	if requested == "" && len(served) > 0 {
		requested = served[0]
	}
	if slices.Contains(served, requested) {
		return d.Version(requested)
	}
	at := k.resource.positions.version
	if k.resource.Match.Version == "" {
		at = k.resource.positions.name
	}
	hint := "it serves no version at all"
	if len(served) > 0 {
		hint = "it serves " + strings.Join(served, ", ")
	}
	k.fail(codeNoVersion, at, fmt.Sprintf("%s does not serve version %q",
		d.GroupResource(), requested), hint)
	return crd.Version{}, false
}

func (k *checker) checkIndex(index *Index, root *crd.Schema) {
	top := []cursor{{schema: root}}
	if index.when != nil {
		k.origin = index.whenOrigin
		k.checkCondition(index.when, top)
	}
	if index.whenCEL != nil {
		k.origin = index.whenOrigin
		k.checkCEL(index.whenCEL, root, true)
	}
	if index.unreadable {
		return
	}
	if index.each != nil {
		k.origin = index.eachOrigin
		top = k.walk(index.each.Steps(), top)
		if index.eachOfLists {
			top = elementsOfLists(top)
		}
	}
	for _, p := range index.parts {
		if p.cel != nil {
			k.origin = p.celOrigin
			k.checkCEL(p.cel, root, false)
		}
		for _, s := range p.sources {
			from := top
			if s.root {
				from = []cursor{{schema: root}}
			}
			k.origin = s.origin
			ends := k.walk(s.path.Steps(), from)
			if s.read != readScalar {
				continue
			}
			k.checkIndexable(ends, "indexes hold text, numbers and booleans")
			k.checkType(index, p, ends)
		}
	}
}

// elementsOfLists replaces lists by their elements.
func elementsOfLists(cursors []cursor) []cursor {
	out := slices.Clone(cursors)
	for i, c := range out {
		if elements, ok := c.elements("[*]"); ok && c.isList() {
			out[i] = elements
		}
	}
	return out
}

// checkIndexable reports a path that only leads to lists or maps.
func (k *checker) checkIndexable(ends []cursor, others string) {
	for _, e := range ends {
		if !e.isList() && !e.isMap() && e.schema.Type != "object" { // an open object is a map, too
			return
		}
	}
	if len(ends) == 0 {
		return
	}
	e := ends[0]
	description, hint := "a map", "name one of its fields, or add .* for all values"
	if e.isList() {
		description, hint = "a list", "add [*] for all elements"
	}
	k.fail(codeNotIndexable, k.position(), fmt.Sprintf("%s is %s, and %s", e.name(),
		description, others), hint)
}
