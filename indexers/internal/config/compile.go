package config

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

// defaults is spec.defaults.
type defaults struct {
	maxValues, maxValueBytes int
	storage                  Storage
	prune                    Prune
	keep                     Keep
}

// decodeDocument decodes one IndexConfig.
func (d *decoder) decodeDocument(n *yaml.Node) {
	var f configForm
	if d.reportOtherKind(n) {
		return
	}
	if IsDeprecated(fieldOfNode(n, "apiVersion").Value) {
		upgrade{report: d.failAt}.document(n)
	}
	if !d.decodeForm(&f, n, "an "+Kind) || !d.checkVersion(&f) {
		return
	}
	if m := &f.Metadata; m.node != nil && d.decodeForm(m, m.node, `"metadata"`) && m.Name.value != "" {
		d.config = m.Name.value
		d.checkUnique(d.configs, Kind, m.Name)
	}
	if f.Spec.node == nil || !d.decodeForm(&f.Spec, f.Spec.node, `"spec"`) {
		return
	}
	index := f.Spec.Defaults.Index
	d.defaults = defaults{
		maxValues:     cmp.Or(index.MaxValues.value, DefaultMaxValues),
		maxValueBytes: cmp.Or(index.MaxValueBytes.value, DefaultMaxValueBytes),
	}
	d.compileStorageAndPrune(&f.Spec.Defaults.Storage, &f.Spec.Defaults.Prune, &d.defaults.storage,
		&d.defaults.prune)
	d.compileKeep(&f.Spec.Defaults.Keep, &f.Spec.Defaults.Prune, &d.defaults.keep, &d.defaults.prune)
	for i := range f.Spec.Resources.items {
		d.compileResource(&f.Spec.Resources.items[i])
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
		NearestSpelling(kind.Value, []string{Kind}) != "" {
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
	d.failAt(CodeOtherKind, kind, fmt.Sprintf("this is a %s of %s, not an %s", kind.Value,
		version.Value, Kind), hint)
	return true
}

// checkVersion checks apiVersion and kind. Fields of an unknown version are not read, because they may have
// another meaning.
func (d *decoder) checkVersion(f *configForm) bool {
	valid := true
	if v := &f.APIVersion; IsDeprecated(v.value) {
		d.failAt(CodeOldVersion, v.node, fmt.Sprintf("apiVersion %q is deprecated", v.value),
			"write apiVersion: "+APIVersion+", or run 'crdcache validate --convert'")
		v.value = APIVersion
	}
	for _, c := range []struct {
		field      textField
		name, want string
	}{{f.APIVersion, "apiVersion", APIVersion}, {f.Kind, "kind", Kind}} {
		if c.field.value != "" && c.field.value != c.want {
			hint := fmt.Sprintf("write %s: %s", c.name, c.want)
			d.failAt(CodeOtherKind, c.field.node, fmt.Sprintf("%s %q is not known", c.name,
				c.field.value), hint)
			valid = false
		}
	}
	return valid
}

// read checks a map of texts; its values are not used.
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

// checkUnique records a name that must be unique.
func (d *decoder) checkUnique(names map[string]string, noun string, name textField) {
	if name.value == "" {
		return
	}
	at := d.file.PositionOf(name.node)
	if before, exists := recordName(names, name.value, d.file, at); exists {
		message := fmt.Sprintf("%s %q is already defined at %s", noun, name.value, before)
		d.fail(CodeDuplicateName, at, message, "choose another name for one of them")
	}
}

func (d *decoder) compileResource(f *resourceForm) {
	r := &Resource{
		Config: d.config, Name: f.Name.value, File: d.file,
		Optional: f.Optional.value, Storage: d.defaults.storage, Prune: d.defaults.prune,
		Keep: d.defaults.keep,
	}
	d.checkUnique(d.names, "resource", f.Name)
	d.compileMatch(&f.Match, r)
	d.compileStorageAndPrune(&f.Storage, &f.Prune, &r.Storage, &r.Prune)
	d.compileKeep(&f.Keep, &f.Prune, &r.Keep, &r.Prune)
	d.compileNamespaces(&f.Namespaces, r)
	d.compileSelectors(&f.Selectors, r)
	names := map[string]string{}
	for i := range f.Indexes.items {
		index := d.compileIndex(&f.Indexes.items[i], names)
		r.Indexes = append(r.Indexes, index)
		d.warnIndexedPruned(r, index)
		d.checkKept(r, index)
		d.checkMetadataOnly(r, index)
	}
	names = map[string]string{}
	for i := range f.References.items {
		if reference, ok := d.compileReference(&f.References.items[i], names); ok {
			r.References = append(r.References, reference)
			d.warnIndexedPruned(r, reference.Index)
			d.checkKept(r, reference.Index)
			d.checkMetadataOnly(r, reference.Index)
		}
	}
	d.resources = append(d.resources, r)
}

func (d *decoder) compileMatch(f *matchForm, r *Resource) {
	r.Match = Match{
		Group: f.Group.value, Version: f.Version.value, Resource: f.Resource.value, Kind: f.Kind.value,
	}
	for at, n := range map[*Position]*yaml.Node{
		&r.MatchPositions.Group: f.Group.node, &r.MatchPositions.Version: f.Version.node,
		&r.MatchPositions.Name: cmp.Or(f.Resource.node, f.Kind.node),
	} {
		if n != nil {
			*at = d.file.PositionOf(n)
		}
	}
}

// compileStorageAndPrune compiles storage and prune. A field that is set replaces the default.
func (d *decoder) compileStorageAndPrune(storage *storageForm, prune *pruneForm, s *Storage, p *Prune) {
	if storage.Mode.node != nil {
		s.Mode = storage.Mode.value
	}
	if prune.Presets.node != nil {
		p.Presets = textsOf(prune.Presets)
	}
	if prune.Remove.node != nil {
		p.Remove = nil
		for _, item := range prune.Remove.items {
			if path := d.compileFieldPath(item.node, "remove"); path != nil && d.checkPrunable(item.node, path) {
				p.Remove = append(p.Remove, path)
			}
		}
	}
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
			d.failAt(CodeContradict, n, p.String()+" cannot be removed", hint)
			return false
		}
	}
	return true
}

// compileKeep compiles keep, which replaces prune. Each one in a resource replaces both defaults.
func (d *decoder) compileKeep(f *keepForm, prune *pruneForm, k *Keep, p *Prune) {
	pruned := prune.Presets.node != nil || prune.Remove.node != nil
	switch {
	case f.Paths.node == nil && pruned:
		*k = Keep{}
	case f.Paths.node == nil:
	case pruned:
		d.failAt(CodeContradict, f.Paths.node, "keep and prune are both set",
			"remove prune, because keep drops all fields that it does not list")
	default:
		*p, k.Paths = Prune{}, []*jsonpath.Path{}
		for _, item := range f.Paths.items {
			if path := d.compileFieldPath(item.node, "keep"); path != nil && d.checkNotWhole(item.node, path) {
				k.Paths = append(k.Paths, path)
			}
		}
	}
}

// compileFieldPath compiles a path to remove or keep.
func (d *decoder) compileFieldPath(n *yaml.Node, verb string) *jsonpath.Path {
	p, at := d.compilePath(n, "a path to "+verb)
	if p == nil {
		return nil
	}
	steps := p.Steps()
	if i := min(plainSteps(steps), len(steps)-1); i >= 0 && len(fieldOf(steps)) < len(steps) {
		d.fail(CodeContradict, at.Position(d.file, i, steps[i].Offset, steps[i].End),
			"a path to "+verb+" can only have names and [*], and must end with a name",
			"name the fields on the way")
		return nil
	}
	return p
}

func (d *decoder) compileNamespaces(f *namespacesForm, r *Resource) {
	r.Namespaces.Include = textsOf(f.Include)
	for _, item := range f.Exclude.items {
		if strings.Trim(item.value, "*") == "" {
			d.failAt(CodeContradict, item.node,
				fmt.Sprintf("%q excludes every namespace", item.value),
				"name the namespaces to exclude, or use include")
			continue
		}
		r.Namespaces.Exclude = append(r.Namespaces.Exclude, item.value)
	}
}

func (d *decoder) compileSelectors(f *selectorsForm, r *Resource) {
	parseLabels := func(s string) (labels.Selector, error) { return labels.Parse(s) }
	r.Selectors.Labels, r.LabelSelector = parseSelector(d, f.Labels, "labels", parseLabels)
	if f.Fields.node != nil {
		r.MatchPositions.Fields = d.file.PositionOf(f.Fields.node)
	}
	r.Selectors.Fields, r.FieldSelector = parseSelector(d, f.Fields, "fields", fields.ParseSelector)
}

// parseSelector parses a selector; an empty one selects everything.
func parseSelector[S any](d *decoder, f textField, field string,
	parse func(string) (S, error)) (_ string, none S) {
	if f.value == "" {
		return "", none
	}
	parsed, err := parse(f.value)
	if err != nil {
		hint := tagOf[selectorsForm](field).Get("hint")
		d.failAt(CodeSelector, f.node, "this is not a selector: "+err.Error(), hint)
		return "", none
	}
	return f.value, parsed
}
