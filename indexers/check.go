package indexers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/naming"
)

// Check compares all resources with CustomResourceDefinitions from a cluster or from files: they must exist,
// and their schemas must have the fields of all paths and conditions. The error is a [*ConfigError] with all
// findings. Fields that a schema leaves open, and missing types that are optional or built into Kubernetes,
// are warnings.
func (c *Config) Check(definitions []*crd.Definition) (warnings []Diagnostic, err error) {
	return splitFindings(checkResources(c.Resources, definitions, false))
}

// CheckOptions selects the checks of [CheckSources] and their limits.
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
	resources, findings := loadResources(sources)
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
	typeName        string // the type in messages: certificates.cert-manager.io/v1
	origin          origin // the expression being checked
}

func (c *checker) fail(code Code, at position, message, hint string) {
	c.report(c.file.finding(code, at, message, hint))
}

// position returns the position of the whole expression being checked.
func (c *checker) position() position { return c.origin.position(c.file, 0, len(c.origin.node.Value)) }

func (c *checker) check(definitions []*crd.Definition) {
	if c.resource.Match.Resource+c.resource.Match.Kind == "" {
		return // reported by the decoder
	}
	matching := c.findDefinitions(definitions)
	if !c.resource.Match.Pattern() || len(matching) < 2 {
		for _, d := range matching {
			c.checkDefinition(d)
		}
		return
	}
	c.checkPatternMatches(matching)
}

// checkPatternMatches checks the resource against each type that a pattern matches. A field that only some
// types lack is a warning.
func (c *checker) checkPatternMatches(matching []*crd.Definition) {
	report := c.report
	defer func() { c.report = report }()
	var findings []Diagnostic
	typesWithoutField := map[position]int{}
	for _, d := range matching {
		reported := map[position]bool{}
		c.report = func(f Diagnostic) {
			findings = append(findings, f)
			if !f.isWarning() {
				reported[f.position()] = true
			}
		}
		c.checkDefinition(d)
		for at := range reported {
			typesWithoutField[at]++
		}
	}
	for _, f := range findings {
		if !f.isWarning() && typesWithoutField[f.position()] < len(matching) {
			f.Code, f.Hint = codeFieldNotInAllTypes,
				fmt.Sprintf("%d of the %d types that the pattern matches have it; the index has no values of the others", len(matching)-typesWithoutField[f.position()], len(matching))
		}
		report(f)
	}
}

func (c *checker) checkDefinition(d *crd.Definition) {
	version, ok := c.findVersion(d)
	if !ok {
		return
	}
	c.typeName = typeName(d, version)
	if version.Schema == nil {
		c.fail(codeNoSchema, c.resource.positions.name, c.typeName+" has no schema", "its paths are not checked")
		return
	}
	c.checkFieldSelector(version)
	for _, finding := range c.resource.CheckSelectable(c.typeName, version.SelectableFields) {
		c.report(finding)
	}
	root := ObjectSchema(version.Schema)
	for _, index := range c.resource.allIndexes() {
		c.checkIndex(index, root)
	}
	if c.resource.wholeCondition != nil {
		c.checkIndex(c.resource.wholeCondition, root)
	}
}

// typeName formats a version of a type for messages.
func typeName(d *crd.Definition, version crd.Version) string {
	return d.GroupResource().String() + "/" + version.Name
}

// findDefinitions returns the CRDs of the resource, and reports if there are none.
func (c *checker) findDefinitions(definitions []*crd.Definition) []*crd.Definition {
	match := c.resource.Match
	var matching []*crd.Definition
	var inGroup, groups []string
	for _, d := range definitions {
		groups = append(groups, d.Group)
		switch {
		case match.Matches(d.Group, d.Names.Plural, d.Names.Kind):
			matching = append(matching, d)
		case d.Group != match.Group:
		case match.Kind != "":
			inGroup = append(inGroup, d.Names.Kind)
		default:
			inGroup = append(inGroup, d.Names.Plural)
		}
	}
	if len(matching) > 0 {
		return matching
	}
	pos, requested := c.resource.positions.name, match.Resource+match.Kind
	message, hint := c.missingCRDMessage(schema.GroupResource{Group: match.Group,
		Resource: requested}.String())
	switch {
	case match.Pattern(): // no suggestions for a pattern
	case len(inGroup) > 0:
		hint = didYouMean(requested, inGroup, "the group has "+joinSorted(inGroup))
	case isBuiltInGroup(match.Group):
		name := schema.GroupResource{Group: match.Group, Resource: requested}.String()
		suggestion, isWrong := isUnknownBuiltInType(match)
		if !isWrong {
			c.fail(codeBuiltIn, pos, name+" is built into Kubernetes", "its paths are not checked")
			return nil
		}
		message, hint = name+" is not a Kubernetes type with the verbs list and watch", suggestion
	default:
		if suggestion := nearestSpelling(match.Group, groups); suggestion != "" {
			pos, hint = c.resource.positions.group, fmt.Sprintf("did you mean the group %q?", suggestion)
		}
	}
	if c.resource.Optional {
		c.fail(codeOptionalMissing, pos, message, "its paths are not checked")
	} else {
		c.fail(codeNoResource, pos, message, hint)
	}
	return nil
}

// isUnknownBuiltInType reports whether the type of a built-in group is a mistake. The core group cannot be
// extended; in other groups, the name is taken for a misspelling if it is similar to a built-in name. hint is
// the remedy.
func isUnknownBuiltInType(match Match) (hint string, isWrong bool) {
	if _, ok := naming.FindBuiltin(match.Group, match.Kind, match.Resource); ok {
		return "", false
	}
	var names []string
	for _, t := range naming.BuiltinTypes {
		switch {
		case t.Group != match.Group:
		case match.Kind != "":
			names = append(names, t.Kind)
		default:
			names = append(names, t.Plural)
		}
	}
	const unlike = "correct its name"
	hint = didYouMean(match.Kind+match.Resource, names, unlike)
	return hint, hint != unlike || match.Group == ""
}

// joinSorted joins the distinct names in alphabetical order.
func joinSorted(names []string) string { return strings.Join(sets.List(sets.New(names...)), ", ") }

// missingCRDMessage returns the message and the default hint for a resource without CRD.
func (c *checker) missingCRDMessage(name string) (message, hint string) {
	switch pattern := c.resource.Match.Pattern(); {
	case pattern && c.hasWholeCluster:
		return "no CRD of the cluster fits " + name,
			"correct the pattern, or write optional: true if there may be none"
	case pattern:
		return "no given CRD fits " + name,
			"correct the pattern, or write optional: true if there may be none"
	case c.hasWholeCluster:
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
func (c *checker) findVersion(d *crd.Definition) (crd.Version, bool) {
	served := d.ServedVersions()
	requested := c.resource.Match.Version
	if requested == "" && len(served) > 0 {
		requested = served[0]
	}
	if slices.Contains(served, requested) {
		return d.Version(requested)
	}
	pos := c.resource.positions.version
	if c.resource.Match.Version == "" {
		pos = c.resource.positions.name
	}
	hint := "it serves no version at all"
	if len(served) > 0 {
		hint = "it serves " + strings.Join(served, ", ")
	}
	c.fail(codeNoVersion, pos, fmt.Sprintf("%s does not serve version %q",
		d.GroupResource(), requested), hint)
	return crd.Version{}, false
}

func (c *checker) checkIndex(index *Index, root *crd.Schema) {
	roots := []cursor{{schema: root}}
	if index.when != nil {
		c.origin = index.whenOrigin
		c.checkCondition(index.when, roots)
	}
	if index.whenCEL != nil {
		c.origin = index.whenOrigin
		c.checkCEL(index.whenCEL, root, true)
	}
	if index.unreadable {
		return
	}
	if index.each != nil {
		c.origin = index.eachOrigin
		roots = c.walk(index.each.Steps(), roots)
		if index.eachOfLists {
			roots = elementsOfLists(roots)
		}
	}
	for n, part := range index.parts {
		if part.cel != nil {
			c.origin = part.celOrigin
			c.checkCEL(part.cel, root, false)
		}
		for _, s := range part.sources {
			from := roots
			if s.root {
				from = []cursor{{schema: root}}
			}
			c.origin = s.origin
			ends := c.walk(s.path.Steps(), from)
			switch s.kind {
			case readScalar:
				c.checkIndexable(ends, "indexes hold text, numbers and booleans", index.containerHints(n))
				c.checkType(index, part, ends)
			case readEntries, readPrintedEntries:
				c.checkEntries(ends)
			}
		}
	}
}

func elementsOfLists(cursors []cursor) []cursor {
	out := slices.Clone(cursors)
	for i, c := range out {
		if elements, ok := c.elements("[*]"); ok && c.isList() {
			out[i] = elements
		}
	}
	return out
}

// containerHints are the remedies for a path that ends at a list or a map.
type containerHints struct{ list, object string }

var manyValuesHints = containerHints{"add [*] for all elements", "name one of its fields, or add .* for all values"}

// containerHints returns the remedies that the config accepts for a part.
func (i *Index) containerHints(part int) containerHints {
	hints := containerHints{"select an element, such as [0], or write each: for all of them", "name one of its fields"}
	switch p := &i.parts[part]; {
	case p.label:
		hints.object += ", or end the name of the label in * for all of them"
	case !p.single && (i.multiValuedPart < 0 || i.multiValuedPart == part):
		return manyValuesHints
	}
	return hints
}

// checkEntries reports a path to the entries of a map that leads to no map.
func (c *checker) checkEntries(ends []cursor) {
	isReadable := func(e cursor) bool { return e.isMap() || e.isOpen() }
	if len(ends) > 0 && !slices.ContainsFunc(ends, isReadable) {
		c.fail(codeContainer, c.position(), fmt.Sprintf("%s is %s, and a label whose name ends in * reads a map",
			ends[0].name(), ends[0].kind()), "remove the * from the name")
	}
}

// checkIndexable reports a path that only leads to lists or maps.
func (c *checker) checkIndexable(ends []cursor, storableKinds string, hints containerHints) {
	isStorable := func(e cursor) bool { return !e.isList() && !e.isMap() && e.schema.Type != "object" }
	if len(ends) == 0 || slices.ContainsFunc(ends, isStorable) { // an open object is a map, too
		return
	}
	e := ends[0]
	description, hint := "a map", hints.object
	if e.isList() {
		description, hint = "a list", hints.list
	}
	c.fail(codeNotIndexable, c.position(), fmt.Sprintf("%s is %s, and %s", e.name(),
		description, storableKinds), hint)
}
