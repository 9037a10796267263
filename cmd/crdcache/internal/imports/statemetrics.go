package imports

import (
	"cmp"
	"fmt"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"maps"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/naming"
)

// Codes of findings about the imported config.
const (
	codeNotImported = "E401" // a part without counterpart, or an invalid one
	codeIgnored     = "W401" // a part that kube-state-metrics ignores
	codeDifferent   = "W402" // a part that crdcache treats differently
)

// stateMetricsConverter converts a CustomResourceState config and collects its findings.
type stateMetricsConverter struct {
	file               string
	lines              [][]byte
	problems, warnings []indexers.Diagnostic
}

func (i *stateMetricsConverter) addFinding(n *yaml.Node, code indexers.Code, message, hint string) {
	d := indexers.Diagnostic{File: i.file, Line: n.Line, Column: n.Column, Code: code,
		Length: max(len(n.Value), 1), Message: message, Hint: hint}
	if n.Line > 0 && n.Line <= len(i.lines) {
		d.Source = string(i.lines[n.Line-1])
	}
	if code == codeNotImported {
		i.problems = append(i.problems, d)
	} else {
		i.warnings = append(i.warnings, d)
	}
}

func (i *stateMetricsConverter) fail(n *yaml.Node, message, hint string) {
	i.addFinding(n, codeNotImported, message, hint)
}

// fields returns the values of a map by name. It ignores unknown fields, as kube-state-metrics does.
func (i *stateMetricsConverter) fields(n *yaml.Node, noun string, known ...string) map[string]*yaml.Node {
	values := map[string]*yaml.Node{}
	if n == nil || n.Tag == "!!null" {
		return values
	}
	if n.Kind != yaml.MappingNode {
		i.fail(n, noun+" is not a map", "write its fields as name: value")
		return values
	}
	for k := 0; k+1 < len(n.Content); k += 2 {
		name, value := n.Content[k], n.Content[k+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		switch {
		case name.Tag == "!!merge":
			i.fail(name, "merge keys are not supported", "write the fields out")
		case name.Value == "errorLogV" && slices.Contains(known, "labelsFromPath") && slices.Contains(known, "commonLabels"):
			i.addFinding(name, codeDifferent, "nothing is logged about values",
				"crdcache_metric_skipped_values_total counts values that are no numbers")
		case !slices.Contains(known, name.Value):
			i.addFinding(name, codeIgnored, fmt.Sprintf("kube-state-metrics ignores %q in %s", name.Value,
				noun), "remove it, or write one of "+strings.Join(known, ", "))
		default:
			values[name.Value] = value
		}
	}
	return values
}

// decode decodes a field of a simple type. Without the field, target is unchanged.
func (i *stateMetricsConverter) decode(n *yaml.Node, target any) {
	if n == nil {
		return
	}
	if err := n.Decode(target); err != nil {
		i.fail(n, "the field has a value of the wrong type", "correct it: kube-state-metrics rejects it, too")
	}
}

func (i *stateMetricsConverter) convert(data []byte) (out []importedResource) {
	found, err := findStateMetrics(data)
	if err != nil {
		i.fail(&yaml.Node{Line: 1, Column: 1}, fmt.Sprintf("the file is not YAML: %v", err), "correct it")
		return out
	}
	names := map[string]bool{}
	for _, config := range found {
		top := i.fields(config, "the config", "apiVersion", "kind", "spec")
		resources := i.fields(top["spec"], "spec", "resources")["resources"]
		for _, n := range resources.Content {
			if r, ok := i.resource(n, names); ok {
				out = append(out, r)
			}
		}
	}
	if len(found) == 0 {
		i.fail(&yaml.Node{Line: 1, Column: 1}, "the file has no CustomResourceStateMetrics config with spec.resources",
			"give such a config, a ConfigMap with it, or Helm values with it")
	}
	return out
}

// labelSet has the labels of a level of the config: constants, and paths to their values.
type labelSet struct {
	constants map[string]string
	fromPaths map[string]pathNode
}

type pathNode struct {
	node     *yaml.Node
	segments []string
}

func (i *stateMetricsConverter) path(n *yaml.Node) (p pathNode) {
	p.node = n
	i.decode(n, &p.segments)
	return p
}

// labels reads the labels of a level of the config. They override the labels of the parent level.
func (i *stateMetricsConverter) labels(fields map[string]*yaml.Node, parent labelSet) labelSet {
	out := labelSet{maps.Clone(parent.constants), maps.Clone(parent.fromPaths)}
	if out.constants == nil {
		out.constants, out.fromPaths = map[string]string{}, map[string]pathNode{}
	}
	commonLabels := map[string]string{}
	i.decode(fields["commonLabels"], &commonLabels)
	maps.Copy(out.constants, commonLabels)
	if n := fields["labelsFromPath"]; n != nil {
		names := make([]string, 0, len(n.Content))
		for k := 0; k+1 < len(n.Content); k += 2 {
			names = append(names, n.Content[k].Value)
		}
		for name, path := range i.fields(n, "labelsFromPath", names...) {
			out.fromPaths[name] = i.path(path)
		}
	}
	return out
}

// resource converts a resource. It returns false if kube-state-metrics ignores the resource.
func (i *stateMetricsConverter) resource(n *yaml.Node, names map[string]bool) (importedResource, bool) {
	fields := i.fields(n, "a resource", "metricNamePrefix", "groupVersionKind", "commonLabels", "labelsFromPath",
		"metrics", "resourcePlural", "errorLogV")
	gvk := i.fields(fields["groupVersionKind"], "groupVersionKind", "group", "version", "kind")
	prefix, group, version, kind := "kube_customresource", "", "", ""
	i.decode(fields["metricNamePrefix"], &prefix)
	for field, target := range map[string]*string{"group": &group, "version": &version, "kind": &kind} {
		i.decode(gvk[field], target)
	}
	if group == "" || group == "*" {
		i.addFinding(n, codeIgnored, "kube-state-metrics ignores a resource without the name of a group", "add groupVersionKind.group")
		return importedResource{}, false
	}
	out := importedResource{Name: session.UniqueName(strings.ToLower(strings.Trim(kind, "*")+"metrics"), names),
		Match: map[string]string{"group": group}, Optional: true, Keep: map[string][]string{"paths": {}}}
	converter := familyConverter{stateMetricsConverter: i, prefix: prefix}
	converter.resourceLabels = i.labels(fields, labelSet{})
	addConstant := func(name, value string) {
		converter.builtinLabels = append(converter.builtinLabels, importedValue{Name: name, Value: &value})
	}
	addConstant("customresource_group", group)
	if version == "" || version == "*" {
		i.addFinding(cmp.Or(gvk["version"], fields["groupVersionKind"]), codeDifferent, "only one version of a type is cached",
			"kube-state-metrics counts each object once for each version")
		converter.builtinLabels = append(converter.builtinLabels, importedValue{Name: "customresource_version",
			Path: "$.apiVersion", Regex: map[string]string{"match": "[^/]+$"}})
	} else {
		out.Match["version"] = version
		addConstant("customresource_version", version)
	}
	if kind == "" || kind == "*" {
		out.Match["resource"] = "*"
		converter.builtinLabels = append(converter.builtinLabels, importedValue{Name: "customresource_kind", Path: "$.kind"})
	} else {
		out.Match["kind"] = kind
		addConstant("customresource_kind", kind)
	}
	if metrics := fields["metrics"]; metrics == nil || metrics.Kind != yaml.SequenceNode {
		i.fail(n, "the resource has no metrics", "add metrics")
	} else {
		out.Metrics = slices.Concat(naming.Map(metrics.Content, converter.metric)...)
	}
	return out, true
}

type familyConverter struct {
	*stateMetricsConverter
	prefix         string
	resourceLabels labelSet
	builtinLabels  []importedValue // the labels that kube-state-metrics adds
}

// metricSource is the content of gauge, info or stateSet.
type metricSource struct {
	familyConverter
	outerLabels  labelSet // of resource and metric
	node         *yaml.Node
	path         pathNode
	valueFrom    pathNode            // valueFrom
	labels       map[string]pathNode // labelsFromPath, relative to path
	labelFromKey string              // labelFromKey
	nilIsZero    bool
	states       []string
	stateLabel   string
	template     importedMetric // without labels and value
}

func (f familyConverter) metric(n *yaml.Node) []importedMetric {
	fields := f.fields(n, "a metric", "name", "help", "each", "commonLabels", "labelsFromPath", "errorLogV")
	each := f.fields(fields["each"], "each", "type", "gauge", "info", "stateSet")
	name, help, kind := "", "", ""
	f.decode(fields["name"], &name)
	f.decode(fields["help"], &help)
	f.decode(each["type"], &kind)
	if f.prefix != "" {
		name = f.prefix + "_" + name
	}
	help = cmp.Or(help, name)
	source := &metricSource{familyConverter: f, node: n, outerLabels: f.stateMetricsConverter.labels(fields,
		f.resourceLabels)}
	source.template = importedMetric{Name: name, Help: help, Limit: 1_000_000}
	typ, isKnown := metricTypes[strings.ToLower(kind)]
	missing := "each." + typ.field
	if !isKnown {
		missing = "type gauge, info or stateSet"
	}
	if each[typ.field] == nil {
		f.fail(n, "the metric has no "+missing, "correct it: kube-state-metrics rejects it, too")
		return nil
	}
	source.read(each[typ.field], typ.field, typ.known)
	return typ.convert(source)
}

// metricTypes are the types of metrics, by their names in lower case.
var metricTypes = map[string]struct {
	field   string   // of each
	known   []string // the fields of this field
	convert func(*metricSource) []importedMetric
}{
	"gauge": {"gauge", []string{"path", "labelsFromPath", "valueFrom", "labelFromKey", "nilIsZero"},
		(*metricSource).gauge},
	"info": {"info", []string{"path", "labelsFromPath", "labelFromKey"}, (*metricSource).info},
	"stateset": {"stateSet", []string{"path", "labelsFromPath", "valueFrom", "list", "labelName"},
		(*metricSource).stateSet},
}

func (e *metricSource) read(n *yaml.Node, noun string, known []string) {
	fields := e.fields(n, noun, known...)
	e.node = n
	e.path, e.valueFrom = e.stateMetricsConverter.path(fields["path"]),
		e.stateMetricsConverter.path(fields["valueFrom"])
	labels := map[string]*yaml.Node{"labelsFromPath": fields["labelsFromPath"]}
	e.labels = e.stateMetricsConverter.labels(labels, labelSet{}).fromPaths
	e.decode(fields["labelFromKey"], &e.labelFromKey)
	e.decode(fields["nilIsZero"], &e.nilIsZero)
	e.decode(fields["list"], &e.states)
	e.decode(fields["labelName"], &e.stateLabel)
}

// isStruct reports whether the path is the whole object, or metadata, spec or status. These are never a list
// or a map of objects.
func (e *metricSource) isStruct() bool {
	return len(e.path.segments) == 0 ||
		len(e.path.segments) == 1 && slices.Contains([]string{"metadata", "spec", "status"}, e.path.segments[0])
}

// fieldBelow returns the path from the object to a field of the path's value.
func (e *metricSource) fieldBelow(p pathNode) pathNode {
	node := cmp.Or(p.node, e.path.node)
	return pathNode{node, slices.Concat(e.path.segments, p.segments)}
}

func (e *metricSource) gauge() []importedMetric {
	value := &importedValue{}
	if e.nilIsZero {
		zero := "0"
		value.Default = &zero
	}
	joinedPath := strings.Join(e.path.segments, ".")
	isPlain := len(e.valueFrom.segments) == 0 && len(e.labels) == 0
	value.Path = e.elementPath(e.valueFrom)
	switch {
	case e.labelFromKey == "" && isPlain && joinedPath != "metadata.annotations" && joinedPath != "metadata.labels":
		value.Path = e.objectPath(e.path)
		return []importedMetric{e.objectMetric(value, nil)}
	case e.labelFromKey != "" || isPlain:
		return e.orZero(e.elementMetric(".*", value, nil))
	case e.isStruct():
		value.Path = e.objectPath(e.fieldBelow(e.valueFrom))
		return []importedMetric{e.objectMetric(value, nil)}
	case e.nilIsZero, len(e.valueFrom.segments) == 0:
		if e.nilIsZero {
			e.addFinding(e.path.node, codeDifferent, "a map at this path counts once",
				"kube-state-metrics has a series with the value 0 for each other field of the map")
		}
		return e.orZero(e.elementMetric("", value, nil))
	}
	elements := e.elementMetric(e.existsFilter([]pathNode{e.valueFrom}), value, nil)
	if len(e.valueFrom.segments) > 1 {
		return []importedMetric{elements}
	}
	return []importedMetric{elements,
		e.objectMetric(&importedValue{Path: e.objectPath(e.fieldBelow(e.valueFrom))}, nil)}
}

// orZero adds the metric of the objects without the path, if they count as 0.
func (e *metricSource) orZero(m importedMetric) []importedMetric {
	if !e.nilIsZero {
		return []importedMetric{m}
	}
	absent := e.objectMetric(&importedValue{Path: e.objectPath(e.path), Default: m.Value.Default}, nil)
	absent.When = "!(@" + e.steps(e.path) + ") || @" + e.steps(e.path) + "==null"
	return []importedMetric{m, absent}
}

func (e *metricSource) info() []importedMetric {
	paths := slices.Collect(maps.Values(e.labels))
	slices.SortFunc(paths, func(a, b pathNode) int { return slices.Compare(a.segments, b.segments) })
	labelsWholeElement := slices.ContainsFunc(paths, func(p pathNode) bool { return len(p.segments) == 0 })
	fullPaths := naming.Map(paths, e.fieldBelow)
	switch {
	case len(paths) == 0 && e.labelFromKey == "":
		e.addFinding(e.node, codeIgnored, "kube-state-metrics has no series for an info without labels",
			"add labelsFromPath or labelFromKey")
		return nil
	case len(paths) == 0:
		return []importedMetric{e.elementMetric(".*", nil, nil)}
	case labelsWholeElement:
		return []importedMetric{e.elementMetric("", nil, nil)}
	}
	object := e.objectMetric(nil, nil)
	if object.When = e.existsCondition(fullPaths); e.isStruct() && e.labelFromKey == "" {
		return []importedMetric{object}
	}
	if e.labelFromKey != "" {
		return []importedMetric{e.elementMetric(".*", nil, nil), object}
	}
	return []importedMetric{e.elementMetric(e.existsFilter(paths), nil, nil), object}
}

func (e *metricSource) stateSet() []importedMetric {
	if e.stateLabel == "" {
		e.addFinding(e.node, codeDifferent, "a stateSet without labelName is left out",
			"kube-state-metrics writes series that Prometheus cannot read; add labelName")
		return nil
	}
	states := &importedValue{Name: e.stateLabel, Values: e.states, Type: "String"}
	if e.isStruct() {
		states.Path = e.objectPath(e.fieldBelow(e.valueFrom))
		return []importedMetric{e.objectMetric(nil, states)}
	}
	states.Path = e.elementPath(e.valueFrom)
	return []importedMetric{e.elementMetric("", nil, states)}
}

func (e *metricSource) objectMetric(value, states *importedValue) importedMetric {
	m := e.template
	m.Value, m.States = value, states
	m.Labels = e.allLabels(func(p pathNode) []string { return []string{e.objectPath(e.fieldBelow(p))} })
	return m
}

// elementMetric returns a metric about the elements at the path followed by step.
func (e *metricSource) elementMetric(step string, value, states *importedValue) importedMetric {
	m := e.template
	m.Value, m.States = value, states
	m.Each = e.objectPath(e.path) + step
	m.Labels = e.allLabels(func(p pathNode) []string {
		if value != nil && len(p.segments) > 0 { // a field of the map replaces one of its members
			return []string{e.objectPath(e.fieldBelow(p)), e.elementPath(p)}
		}
		return []string{e.elementPath(p)}
	})
	if e.labelFromKey != "" {
		m.Labels = append(m.Labels, importedValue{Name: labelName(e.labelFromKey), ElementKey: true})
	}
	return m
}

// allLabels returns the labels of all levels. paths returns the paths of a label of the innermost level.
func (e *metricSource) allLabels(paths func(pathNode) []string) []importedValue {
	out := slices.Clone(e.builtinLabels)
	names := slices.AppendSeq(slices.Collect(maps.Keys(e.outerLabels.constants)),
		maps.Keys(e.outerLabels.fromPaths))
	names = slices.AppendSeq(names, maps.Keys(e.labels))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if name == e.labelFromKey || name == e.stateLabel ||
			slices.ContainsFunc(e.builtinLabels, func(v importedValue) bool { return v.Name == name }) {
			continue // reserved
		}
		label := importedValue{Name: labelName(name), Format: "Go"}
		if fieldPath, ok := e.labels[name]; ok {
			label.Paths = paths(fieldPath)
			e.readEquality(&label, fieldPath)
		}
		if outerPath, ok := e.outerLabels.fromPaths[name]; ok {
			label.Paths = append(label.Paths, e.objectPath(outerPath))
			e.readEquality(&label, outerPath)
		}
		constant, isConstant := e.outerLabels.constants[name]
		switch {
		case len(label.Paths) == 0:
			label.Value, label.Format = &constant, ""
		case isConstant:
			label.Default = &constant
		}
		if !slices.ContainsFunc(label.Paths, canBeContainer) {
			label.Format = ""
		}
		if len(label.Paths) == 1 {
			label.Path, label.Paths = label.Paths[0], nil
		}
		out = append(out, label)
	}
	return out
}
