package indexers

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

// checkTargets checks the targets of references against the definitions. If objects name the type, it checks
// the default.
func (c *checker) checkTargets(definitions []*crd.Definition) {
	for _, reference := range c.resource.References {
		t, ok := targetOf(reference)
		if !ok {
			continue
		}
		var groups, names []string
		isDefined := false
		for _, d := range definitions {
			name := d.Names.Kind
			if t.Kind == "" {
				name = d.Names.Plural
			}
			if d.Group != t.Group {
				groups = append(groups, d.Group)
				continue
			}
			names = append(names, name)
			if name == t.Kind+t.Resource {
				isDefined = true
				c.checkNamespace(reference, d.GroupResource(), d.Namespaced, definitions)
			}
		}
		if builtInType, ok := naming.FindBuiltin(t.Group, t.Kind, t.Resource); ok && !isDefined {
			c.checkNamespace(reference, schema.GroupResource{Group: builtInType.Group,
				Resource: builtInType.Plural}, builtInType.Has(naming.Namespaced), definitions)
		}
		if !isDefined && (len(names) > 0 || !isBuiltInGroup(t.Group)) {
			c.reportNoTarget(reference, t, groups, names)
		}
	}
}

// checkNamespace reports a reference without a namespace to a namespaced type.
func (c *checker) checkNamespace(r *Reference, target schema.GroupResource, namespaced bool,
	definitions []*crd.Definition) {
	const hint = "add namespace: with its name, or namespacePath: with the path to it"
	switch part := r.part(partNamespace); {
	case !namespaced:
	case part.constant && part.missing.value == "" && part.missing.node == nil:
		c.fail(codeNoNamespace, r.targetPosition,
			fmt.Sprintf("%s is namespaced, and the reference has no namespace", target), hint)
	case r.To.isFixed() && len(part.sources) == 1 && part.sources[0].origin.node == nil &&
		c.clusterScoped(definitions):
		c.fail(codeNoNamespace, r.targetPosition,
			fmt.Sprintf("%s is namespaced, and the referring objects are cluster-scoped", target), hint)
	}
}

// clusterScoped reports whether the resource's definitions are known and all cluster-scoped.
func (c *checker) clusterScoped(definitions []*crd.Definition) bool {
	m, isKnown := c.resource.Match, false
	for _, d := range definitions {
		if m.Matches(d.Group, d.Names.Plural, d.Names.Kind) {
			if isKnown = true; d.Namespaced {
				return false
			}
		}
	}
	if builtInType, ok := naming.FindBuiltin(m.Group, m.Kind, m.Resource); ok && !isKnown {
		return !builtInType.Has(naming.Namespaced)
	}
	return isKnown
}

// targetOf returns the fixed or default target type of a reference; false if only objects name it.
func targetOf(r *Reference) (TargetType, bool) {
	if r.To.isFixed() {
		return r.To, true
	}
	group, kind := r.part(partGroup), r.part(partKind)
	if group == nil || kind == nil || group.missing.node == nil || kind.missing.node == nil ||
		kind.missing.value == "" {
		return TargetType{}, false
	}
	return TargetType{Group: group.missing.value, Kind: kind.missing.value}, true
}

// reportNoTarget reports a target type without definition; groups and names are the known ones.
func (c *checker) reportNoTarget(reference *Reference, t TargetType, groups, names []string) {
	name := schema.GroupResource{Group: t.Group, Resource: t.Kind + t.Resource}.String()
	message := name + " is the target of a reference and not in the given CRDs"
	hint := "give the CRD of the type too, or correct its name"
	if c.hasWholeCluster {
		message, hint = name+" is the target of a reference and not in the cluster",
			"install its CRD, or correct its name"
	}
	target := t.Kind + t.Resource
	switch {
	case !reference.To.isFixed() && nearestSpelling(target, names) == "":
		return // objects can name any type, and this one is only the default
	case len(names) > 0:
		hint = didYouMean(target, names, "the group has "+joinSorted(names))
	default:
		if suggestion := nearestSpelling(t.Group, groups); suggestion != "" {
			hint = fmt.Sprintf("did you mean the group %q?", suggestion)
		}
	}
	c.fail(codeNoTarget, reference.targetPosition, message, hint)
}

// checkFieldSelector reports a field selector over a field that custom resources cannot be selected by: the
// server would reject every list.
func (c *checker) checkFieldSelector(version crd.Version) {
	if c.resource.fieldSelector == nil {
		return
	}
	fields := []string{"metadata.name", "metadata.namespace"}
	for _, field := range version.SelectableFields {
		fields = append(fields, strings.TrimPrefix(field, "."))
	}
	for _, r := range c.resource.fieldSelector.Requirements() {
		if slices.Contains(fields, r.Field) {
			continue
		}
		hint := didYouMean(r.Field, fields,
			"the server selects by "+strings.Join(fields, ", ")+"; use an index for others")
		c.fail(codeUnselectable, c.resource.positions.fieldSelector, fmt.Sprintf("%s has no selectable field %q",
			c.typeName, r.Field), hint)
	}
}

// CheckSelectable returns findings for the selectable fields of a type that a cache of the resource does not
// store: clients of a server could not select by them.
func (r *Resource) CheckSelectable(typeName string, fields []string) (findings []Diagnostic) {
	for _, field := range fields {
		if path, err := jsonpath.Compile(field); err == nil && r.drops(path) {
			findings = append(findings, r.file.finding(codeDropped, r.positions.dropped,
				fmt.Sprintf("%s can be selected by %s, which is not stored", typeName, field),
				"add it to keep.paths, remove it from prune, or use another storage mode"))
		}
	}
	return findings
}
