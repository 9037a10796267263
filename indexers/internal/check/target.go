package check

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers/internal/config"
)

// targets compares what the references lead to with the definitions. Fields of objects may say the type; then what stands
// for missing ones is compared.
func (k *checking) targets(definitions []*crd.Definition) {
	for _, r := range k.resource.References {
		t, ok := targetOf(r)
		if !ok {
			continue
		}
		var groups, names []string
		found := false
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
			if name != t.Kind+t.Resource {
				continue
			}
			found = true
			if at := r.Part(config.PartNamespace); at.Constant && d.Namespaced {
				k.fail(config.CodeNoNamespace, r.At, fmt.Sprintf("objects of %s have namespaces, and with namespace: none the reference leads to none of them", d.GroupResource()), "leave it out for the object's own namespace, or write the path to it")
			}
		}
		if !found && (len(names) > 0 || !builtIn(t.Group)) {
			k.noTarget(r, t, groups, names)
		}
	}
}

// Targets gives the types that the references of a resource are to.
func Targets(r *config.Resource) (all []config.TargetType) {
	for _, reference := range r.References {
		if t, ok := targetOf(reference); ok {
			all = append(all, t)
		}
	}
	return all
}

// targetOf gives the type that a reference is to, or is to where fields do not say another; false where only they know.
func targetOf(r *config.Reference) (config.TargetType, bool) {
	if r.To.IsFixed() {
		return r.To, true
	}
	group, kind := r.Part(config.PartGroup), r.Part(config.PartKind)
	if group == nil || kind == nil || group.Missing.At == nil || kind.Missing.At == nil || kind.Missing.Value == "" {
		return config.TargetType{}, false
	}
	return config.TargetType{Group: group.Missing.Value, Kind: kind.Missing.Value}, true
}

// noTarget reports a reference to a type that there is no definition of, beside those of the other groups and names.
func (k *checking) noTarget(r *config.Reference, t config.TargetType, groups, names []string) {
	name := schema.GroupResource{Group: t.Group, Resource: t.Kind + t.Resource}.String()
	message, hint := name+" is not in the given CRDs, so that the reference may be to a type that does not exist", "give the CRD of the type too, or correct its name"
	if k.cluster {
		message, hint = name+" is not in the cluster, so that the reference leads to nothing", "install its CRD, or correct its name"
	}
	near := config.Nearest(t.Kind+t.Resource, names)
	switch {
	case near != "":
		hint = fmt.Sprintf("did you mean %q?", near)
	case !r.To.IsFixed():
		return // objects may name types of anybody, and what is missing is a default: only a slip shows
	case len(names) > 0:
		hint = fmt.Sprintf("the group has %s", strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), ", "))
	default:
		if near := config.Nearest(t.Group, groups); near != "" {
			hint = fmt.Sprintf("did you mean the group %q?", near)
		}
	}
	k.fail(config.CodeNoTarget, r.At, message, hint)
}
