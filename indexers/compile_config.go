package indexers

import (
	"cmp"
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

type defaults struct {
	maxValues, maxValueBytes int
	resource                 Resource // has the default storage
}

func (d *decoder) decodeDocument(n *yaml.Node) {
	var form configForm
	if d.reportOtherKind(n) {
		return
	}
	if !d.decodeForm(&form, n, "an "+Kind) || !d.checkVersion(&form) {
		return
	}
	if m := &form.Metadata; m.node != nil && d.decodeForm(m, m.node, `"metadata"`) && m.Name.value != "" {
		d.config = m.Name.value
		d.checkUnique(d.configPositions, Kind, m.Name)
	}
	if form.Spec.node == nil || !d.decodeForm(&form.Spec, form.Spec.node, `"spec"`) {
		return
	}
	index := form.Spec.Defaults.Index
	d.defaults = defaults{
		maxValues:     cmp.Or(index.MaxValues.value, DefaultMaxValues),
		maxValueBytes: cmp.Or(index.MaxValueBytes.value, DefaultMaxValueBytes),
	}
	d.compileStorage(&form.Spec.Defaults.storedForm, &d.defaults.resource)
	for i := range form.Spec.Resources.items {
		d.compileResource(&form.Spec.Resources.items[i])
	}
}

// reportOtherKind reports a manifest of another kind, to avoid an error for each of its fields.
func (d *decoder) reportOtherKind(n *yaml.Node) bool {
	values := map[string]*yaml.Node{}
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			values[n.Content[i].Value] = n.Content[i+1]
		}
	}
	version, kind := values["apiVersion"], values["kind"]
	if version == nil || kind == nil || version.Value == "" || kind.Value == "" ||
		nearestSpelling(kind.Value, []string{Kind}) != "" {
		return false
	}
	group, _, _ := strings.Cut(APIVersion, "/")
	if strings.HasPrefix(version.Value, group) {
		return false
	}
	hint := "remove it from the file"
	if kind.Value == "ConfigMap" {
		hint = "load the file in the ConfigMap"
	}
	d.failAt(codeOtherKind, kind, fmt.Sprintf("this is a %s of %s, not an %s", kind.Value,
		version.Value, Kind), hint)
	return true
}

// checkVersion checks apiVersion and kind. Fields of an unknown version are not read, because they may have
// another meaning.
func (d *decoder) checkVersion(f *configForm) bool {
	valid := true
	for _, c := range []struct {
		field      textField
		name, want string
	}{{f.APIVersion, "apiVersion", APIVersion}, {f.Kind, "kind", Kind}} {
		if c.field.value != "" && c.field.value != c.want {
			hint := fmt.Sprintf("write %s: %s", c.name, c.want)
			d.failAt(codeOtherKind, c.field.node, fmt.Sprintf("%s %q is not known", c.name,
				c.field.value), hint)
			valid = false
		}
	}
	return valid
}

// read checks that the node is a map of texts. It does not store the texts, because no caller needs them.
func (*textsForm) read(d *decoder, n *yaml.Node, at valueContext) bool {
	if !d.checkNodeKind(n, yaml.MappingNode, at.name, "a map of texts", "write name: value") {
		return false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if value := n.Content[i+1]; value.Kind != yaml.ScalarNode || value.ShortTag() != "!!str" {
			d.reportWrongKind(value, "a value of "+at.name, "text", "put quotes around it")
		}
	}
	return true
}

func (d *decoder) checkUnique(names map[string]string, noun string, name textField) {
	if name.value == "" {
		return
	}
	at := d.file.positionOf(name.node)
	if before, exists := names[name.value]; exists {
		message := fmt.Sprintf("%s %q is already defined at %s", noun, name.value, before)
		d.fail(codeDuplicateName, at, message, "choose another name for one of them")
		return
	}
	names[name.value] = fmt.Sprintf("%s:%s", d.file.name, at)
}

func (d *decoder) compileResource(form *resourceForm) {
	r := d.defaults.resource
	r.Config, r.Name, r.Optional, r.file = d.config, form.Name.value, form.Optional.value, d.file
	d.checkUnique(d.resourcePositions, "resource", form.Name)
	d.compileMatch(&form.Match, &r)
	d.compileStorage(&form.storedForm, &r)
	d.compileNamespaces(&form.Namespaces, &r)
	selectors := &form.Selectors
	r.Selectors.Labels, r.labelSelector = parseSelector(d, selectors.Labels, "labels", parseLabels)
	r.Selectors.Fields, r.fieldSelector = parseSelector(d, selectors.Fields, "fields", fields.ParseSelector)
	if selectors.Fields.node != nil {
		r.positions.fieldSelector = d.file.positionOf(selectors.Fields.node)
	}
	names := map[string]string{}
	for i := range form.Indexes.items {
		r.Indexes = append(r.Indexes, d.compileIndex(&form.Indexes.items[i], names))
	}
	names = map[string]string{}
	for i := range form.References.items {
		if reference, ok := d.compileReference(&form.References.items[i], names); ok {
			r.References = append(r.References, reference)
		}
	}
	metricNames := map[string]int{}
	for i := range form.Metrics.items {
		if metric, ok := d.compileMetric(&form.Metrics.items[i], &r, metricNames); ok {
			r.Metrics = append(r.Metrics, metric)
		}
	}
	for _, index := range r.allIndexes() {
		if index.complete() {
			index.deriveFields()
			d.checkStorage(&r, index)
		}
	}
	d.resources = append(d.resources, &r)
}

func (d *decoder) compileMatch(f *matchForm, r *Resource) {
	r.Match = Match{
		Group: f.Group.value, Version: f.Version.value, Resource: f.Resource.value, Kind: f.Kind.value,
	}
	for at, n := range map[*position]*yaml.Node{
		&r.positions.group: f.Group.node, &r.positions.version: f.Version.node,
		&r.positions.name: cmp.Or(f.Resource.node, f.Kind.node),
	} {
		if n != nil {
			*at = d.file.positionOf(n)
		}
	}
}

// compileStorage compiles storage, prune and keep. A field that is set replaces the default; keep and prune
// replace each other.
func (d *decoder) compileStorage(form *storedForm, r *Resource) {
	if form.Storage.Mode.node != nil {
		r.Storage.Mode = form.Storage.Mode.value
	}
	if form.Prune.Presets.node != nil {
		r.pruned.presets = textsOf(form.Prune.Presets)
	}
	if form.Prune.Remove.node != nil {
		r.pruned.paths = nil
		for _, item := range form.Prune.Remove.items {
			if path := d.compileFieldPath(item.node, "remove"); path != nil && d.checkPrunable(item.node, path) {
				r.pruned.paths = append(r.pruned.paths, path)
			}
		}
	}
	prunes := form.Prune.Presets.node != nil || form.Prune.Remove.node != nil
	switch {
	case form.Keep.Paths.node == nil && prunes:
		r.Keep, r.wholeCondition = Keep{}, nil
	case form.Keep.Paths.node == nil:
	case prunes:
		d.failAt(codeContradict, form.Keep.Paths.node, "keep and prune are both set",
			"remove prune, because keep drops all fields that it does not list")
	default:
		r.pruned, r.Keep = prunedFields{}, Keep{Paths: []string{}}
		d.compileWholeObjects(&form.Keep.Whole, r)
		for _, item := range form.Keep.Paths.items {
			switch path := d.compileFieldPath(item.node, "keep"); {
			case path == nil:
			case len(path.Steps()) == 0:
				d.failAt(codeContradict, item.node, "$ keeps all fields", "name a field, or remove keep")
			default:
				r.Keep.Paths = append(r.Keep.Paths, fieldText(path.Steps()))
			}
		}
	}
	if n := cmp.Or(form.Keep.Paths.node, form.Prune.Remove.node, form.Storage.Mode.node); n != nil {
		r.positions.dropped = d.file.positionOf(n)
	}
	d.checkWholeObjects(form, r)
	r.Prune = r.pruned.withoutRead(nil)
}

// protectedPaths are the paths that identify objects or that a cache needs.
var protectedPaths = [][]string{
	nil, {"apiVersion"}, {"kind"}, {"metadata"}, {"metadata", "name"}, {"metadata", "namespace"},
	{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "labels"},
	{"metadata", "annotations", metav1.InitialEventsAnnotationKey},
}

// checkPrunable reports paths that must not be pruned.
func (d *decoder) checkPrunable(n *yaml.Node, p *jsonpath.Path) bool {
	for _, keys := range protectedPaths {
		if p.String() == jsonpath.FromSegments(keys...).String() {
			hint := "a cache needs it to identify, select and watch objects"
			d.failAt(codeContradict, n, p.String()+" cannot be removed", hint)
			return false
		}
	}
	return true
}

func (d *decoder) compileNamespaces(f *namespacesForm, r *Resource) {
	r.Namespaces.Include = textsOf(f.Include)
	for _, item := range f.Exclude.items {
		if strings.Trim(item.value, "*") == "" {
			d.failAt(codeContradict, item.node, fmt.Sprintf("%q excludes every namespace", item.value),
				"name the namespaces to exclude, or use include")
			continue
		}
		r.Namespaces.Exclude = append(r.Namespaces.Exclude, item.value)
	}
}

func parseLabels(s string) (labels.Selector, error) { return labels.Parse(s) }

// parseSelector parses a selector; an empty one selects everything.
func parseSelector[S any](d *decoder, f textField, field string,
	parse func(string) (S, error)) (_ string, none S) {
	if f.value == "" {
		return "", none
	}
	parsed, err := parse(f.value)
	if err != nil {
		hint := tagOf[selectorsForm](field).Get("hint")
		d.failAt(codeSelector, f.node, "this is not a selector: "+err.Error(), hint)
		return "", none
	}
	return f.value, parsed
}
