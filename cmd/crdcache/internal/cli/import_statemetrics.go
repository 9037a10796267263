package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/indexers"
)

// Codes of findings about the imported config.
const (
	codeNotImported = "E401" // a part without counterpart, or an invalid one
	codeIgnored     = "W401" // a part that kube-state-metrics ignores
	codeDifferent   = "W402" // a part that crdcache treats differently
)

// stateMetricsImport converts a CustomResourceState config and collects its findings.
type stateMetricsImport struct {
	file               string
	lines              [][]byte
	problems, warnings []indexers.Diagnostic
}

func (i *stateMetricsImport) finding(n *yaml.Node, code indexers.Code, message, hint string) {
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

func (i *stateMetricsImport) fail(n *yaml.Node, message, hint string) {
	i.finding(n, codeNotImported, message, hint)
}

// fields returns the values of a map by name. Unknown ones are ignored, as kube-state-metrics does.
func (i *stateMetricsImport) fields(n *yaml.Node, noun string, known ...string) map[string]*yaml.Node {
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
		case name.Value == "errorLogV":
			i.finding(name, codeDifferent, "nothing is logged about values",
				"crdcache_metric_skipped_values_total counts values that are no numbers")
		case !slices.Contains(known, name.Value):
			i.finding(name, codeIgnored, fmt.Sprintf("kube-state-metrics ignores %q in %s", name.Value, noun),
				"remove it, or write one of "+strings.Join(known, ", "))
		default:
			values[name.Value] = value
		}
	}
	return values
}

// decode decodes a field of a simple type; it leaves into unchanged without the field.
func (i *stateMetricsImport) decode(n *yaml.Node, into any) {
	if n == nil {
		return
	}
	if err := n.Decode(into); err != nil {
		i.fail(n, "the field has a value of the wrong type", "correct it: kube-state-metrics rejects it, too")
	}
}

func (i *stateMetricsImport) convert(data []byte) importedConfig {
	out := importedConfig{APIVersion: indexers.APIVersion, Kind: indexers.Kind,
		Metadata: map[string]string{"name": "kube-state-metrics"}}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil || len(document.Content) == 0 {
		i.fail(&yaml.Node{Line: 1, Column: 1}, fmt.Sprintf("the file is not a YAML document: %v", err), "correct it")
		return out
	}
	top := i.fields(document.Content[0], "the config", "apiVersion", "kind", "spec")
	resources := i.fields(top["spec"], "spec", "resources")["resources"]
	if resources == nil || resources.Kind != yaml.SequenceNode {
		i.fail(document.Content[0], "the config has no spec.resources", "give the CustomResourceStateMetrics config itself")
		return out
	}
	names := map[string]bool{}
	for _, n := range resources.Content {
		out.Spec.Resources = append(out.Spec.Resources, i.resource(n, names))
	}
	return out
}

// labelSet has the labels of a level of the config.
type labelSet struct {
	fixed map[string]string
	paths map[string]pathNode
}

// pathNode is a path in the config.
type pathNode struct {
	node     *yaml.Node
	segments []string
}

func (i *stateMetricsImport) path(n *yaml.Node) (p pathNode) {
	p.node = n
	i.decode(n, &p.segments)
	return p
}

// labels reads the labels of a level on top of those of the level above.
func (i *stateMetricsImport) labels(fields map[string]*yaml.Node, above labelSet) labelSet {
	out := labelSet{maps.Clone(above.fixed), maps.Clone(above.paths)}
	if out.fixed == nil {
		out.fixed, out.paths = map[string]string{}, map[string]pathNode{}
	}
	fixed := map[string]string{}
	i.decode(fields["commonLabels"], &fixed)
	maps.Copy(out.fixed, fixed)
	if n := fields["labelsFromPath"]; n != nil {
		names := make([]string, 0, len(n.Content))
		for k := 0; k+1 < len(n.Content); k += 2 {
			names = append(names, n.Content[k].Value)
		}
		for name, path := range i.fields(n, "labelsFromPath", names...) {
			out.paths[name] = i.path(path)
		}
	}
	return out
}

func (i *stateMetricsImport) resource(n *yaml.Node, names map[string]bool) importedResource {
	fields := i.fields(n, "a resource", "metricNamePrefix", "groupVersionKind", "commonLabels", "labelsFromPath",
		"metrics", "resourcePlural")
	gvk := i.fields(fields["groupVersionKind"], "groupVersionKind", "group", "version", "kind")
	prefix, plural, group, version, kind := "kube_customresource", "", "", "", ""
	for field, into := range map[string]*string{"metricNamePrefix": &prefix, "resourcePlural": &plural} {
		i.decode(fields[field], into)
	}
	for field, into := range map[string]*string{"group": &group, "version": &version, "kind": &kind} {
		i.decode(gvk[field], into)
	}
	if kind == "" {
		i.fail(n, "the resource has no kind", "add groupVersionKind")
	}
	out := importedResource{Name: uniqueName(strings.ToLower(strings.Trim(kind, "*")+"metrics"), names),
		Match: map[string]string{"group": group}, Optional: true, Keep: map[string][]string{"paths": {}}}
	family := family{stateMetricsImport: i, prefix: prefix}
	family.resource = i.labels(fields, labelSet{})
	fixed := func(name, value string) {
		family.own = append(family.own, importedValue{Name: name, Value: &value})
	}
	fixed("customresource_group", group)
	switch {
	case version == "*":
		i.finding(gvk["version"], codeDifferent, "only one version of a type is cached",
			"kube-state-metrics counts each object once for each version")
		family.own = append(family.own, importedValue{Name: "customresource_version", Path: "$.apiVersion",
			Regex: &importedRegex{Match: "[^/]+$"}})
	default:
		out.Match["version"] = version
		fixed("customresource_version", version)
	}
	switch {
	case kind == "*":
		out.Match["resource"] = "*"
		family.own = append(family.own, importedValue{Name: "customresource_kind", Path: "$.kind"})
	case plural != "":
		out.Match["resource"] = plural
		fixed("customresource_kind", kind)
	default:
		out.Match["kind"] = kind
		fixed("customresource_kind", kind)
	}
	if metrics := fields["metrics"]; metrics == nil || metrics.Kind != yaml.SequenceNode {
		i.fail(n, "the resource has no metrics", "add metrics")
	} else {
		for _, metric := range metrics.Content {
			out.Metrics = append(out.Metrics, family.metric(metric)...)
		}
	}
	return out
}

// family converts the metrics of one resource.
type family struct {
	*stateMetricsImport
	prefix   string
	resource labelSet
	own      []importedValue // the labels that kube-state-metrics adds
}

// each is the content of gauge, info or stateSet.
type each struct {
	family
	base       labelSet // of resource and metric
	node       *yaml.Node
	path       pathNode
	from       pathNode            // valueFrom
	labels     map[string]pathNode // labelsFromPath, relative to path
	key        string              // labelFromKey
	nilIsZero  bool
	states     []string
	stateLabel string
	empty      importedMetric // without labels and value
}

func (f family) metric(n *yaml.Node) []importedMetric {
	fields := f.fields(n, "a metric", "name", "help", "each", "commonLabels", "labelsFromPath")
	typed := f.fields(fields["each"], "each", "type", "gauge", "info", "stateSet")
	name, help, kind := "", "", ""
	f.decode(fields["name"], &name)
	f.decode(fields["help"], &help)
	f.decode(typed["type"], &kind)
	if f.prefix != "" {
		name = f.prefix + "_" + name
	}
	if help == "" {
		help = name
	}
	e := &each{family: f, node: n, base: f.stateMetricsImport.labels(fields, f.resource)}
	e.empty = importedMetric{Name: name, Help: help, Limit: 1_000_000}
	field, convert := "", e.gauge
	switch strings.ToLower(kind) {
	case "gauge":
		field = "gauge"
	case "info":
		field, convert = "info", e.info
	case "stateset":
		field, convert = "stateSet", e.stateSet
	}
	missing := ""
	switch {
	case field == "":
		missing = "type gauge, info or stateSet"
	case typed[field] == nil:
		missing = "each." + field
	}
	if missing != "" {
		f.fail(n, "the metric has no "+missing, "correct it: kube-state-metrics rejects it, too")
		return nil
	}
	e.read(typed[field], field)
	return convert()
}

func (e *each) read(n *yaml.Node, noun string) {
	known := map[string][]string{"gauge": {"path", "labelsFromPath", "valueFrom", "labelFromKey", "nilIsZero"},
		"info": {"path", "labelsFromPath", "labelFromKey"}, "stateSet": {"path", "labelsFromPath", "valueFrom", "list",
			"labelName"}}[noun]
	fields := e.fields(n, noun, known...)
	e.node = n
	e.path, e.from = e.stateMetricsImport.path(fields["path"]), e.stateMetricsImport.path(fields["valueFrom"])
	e.labels = e.stateMetricsImport.labels(map[string]*yaml.Node{"labelsFromPath": fields["labelsFromPath"]}, labelSet{}).paths
	e.decode(fields["labelFromKey"], &e.key)
	e.decode(fields["nilIsZero"], &e.nilIsZero)
	e.decode(fields["list"], &e.states)
	e.decode(fields["labelName"], &e.stateLabel)
}

// isStruct reports whether the path is the object or a part of it that is never a list or a map of objects.
func (e *each) isStruct() bool {
	return len(e.path.segments) == 0 ||
		len(e.path.segments) == 1 && slices.Contains([]string{"metadata", "spec", "status"}, e.path.segments[0])
}

// below returns the path of a field below the path, from the object.
func (e *each) below(p pathNode) pathNode {
	node := p.node
	if node == nil {
		node = e.path.node
	}
	return pathNode{node, slices.Concat(e.path.segments, p.segments)}
}

func (e *each) gauge() []importedMetric {
	value := &importedValue{}
	if e.nilIsZero {
		zero := "0"
		value.Default = &zero
	}
	at := strings.Join(e.path.segments, ".")
	switch {
	case e.key != "":
		value.Path = e.relative(e.from)
		return []importedMetric{e.elements(".*", value, nil)}
	case len(e.from.segments) == 0 && len(e.labels) == 0 && (at == "metadata.annotations" || at == "metadata.labels"):
		value.Path = "@"
		return []importedMetric{e.elements(".*", value, nil)}
	case len(e.from.segments) == 0 && len(e.labels) == 0:
		value.Path = e.fromObject(e.path)
		return []importedMetric{e.object(value, nil)}
	case e.isStruct():
		value.Path = e.fromObject(e.below(e.from))
		return []importedMetric{e.object(value, nil)}
	case e.nilIsZero:
		e.finding(e.path.node, codeDifferent, "objects without this path have no series",
			"kube-state-metrics has one with the value 0")
		value.Path = e.relative(e.from)
		return []importedMetric{e.elements("", value, nil)}
	case len(e.from.segments) == 0:
		value.Path = "@"
		return []importedMetric{e.elements("", value, nil)}
	}
	value.Path = e.relative(e.from)
	elements := e.elements(e.filter([]pathNode{e.from}), value, nil)
	if len(e.from.segments) > 1 {
		return []importedMetric{elements}
	}
	return []importedMetric{elements, e.object(&importedValue{Path: e.fromObject(e.below(e.from))}, nil)}
}

func (e *each) info() []importedMetric {
	paths := slices.Collect(maps.Values(e.labels))
	slices.SortFunc(paths, func(a, b pathNode) int { return slices.Compare(a.segments, b.segments) })
	ofElement := slices.ContainsFunc(paths, func(p pathNode) bool { return len(p.segments) == 0 })
	joined := make([]pathNode, len(paths))
	for k, p := range paths {
		joined[k] = e.below(p)
	}
	switch {
	case e.key != "":
		return []importedMetric{e.elements(".*", nil, nil)}
	case len(paths) == 0:
		e.finding(e.node, codeIgnored, "kube-state-metrics has no series for an info without labels",
			"add labelsFromPath or labelFromKey")
		return nil
	case ofElement:
		return []importedMetric{e.elements("", nil, nil)}
	}
	object := e.object(nil, nil)
	if object.When = e.exists(joined); e.isStruct() {
		return []importedMetric{object}
	}
	return []importedMetric{e.elements(e.filter(paths), nil, nil), object}
}

func (e *each) stateSet() []importedMetric {
	states := &importedValue{Name: e.stateLabel, Values: e.states}
	if len(e.labels) == 0 && len(e.from.segments) == 0 || e.isStruct() {
		states.Path = e.fromObject(e.below(e.from))
		return []importedMetric{e.object(nil, states)}
	}
	states.Path = e.relative(e.from)
	return []importedMetric{e.elements("", nil, states)}
}

// object returns a metric with paths from the object.
func (e *each) object(value, states *importedValue) importedMetric {
	m := e.empty
	m.Value, m.States = value, states
	m.Labels = e.allLabels(func(p pathNode) []string { return []string{e.fromObject(e.below(p))} })
	return m
}

// elements returns a metric about the elements at the path, to which a step is added.
func (e *each) elements(step string, value, states *importedValue) importedMetric {
	m := e.empty
	m.Value, m.States = value, states
	m.Each = e.fromObject(e.path) + step
	m.Labels = e.allLabels(func(p pathNode) []string {
		if e.key != "" && value != nil { // a field of the map replaces one of its members
			return []string{e.fromObject(e.below(p)), e.relative(p)}
		}
		return []string{e.relative(p)}
	})
	if e.key != "" {
		m.Labels = append(m.Labels, importedValue{Name: labelName(e.key), ElementKey: true})
	}
	return m
}

// allLabels returns the labels of all levels. paths returns the paths of a label of the innermost level.
func (e *each) allLabels(paths func(pathNode) []string) []importedValue {
	out := slices.Clone(e.own)
	names := slices.AppendSeq(slices.Collect(maps.Keys(e.base.fixed)), maps.Keys(e.base.paths))
	names = slices.AppendSeq(names, maps.Keys(e.labels))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if slices.ContainsFunc(e.own, func(v importedValue) bool { return v.Name == name }) {
			continue // reserved
		}
		label := importedValue{Name: labelName(name)}
		if own, ok := e.labels[name]; ok {
			label.Paths, label.Regex = paths(own), e.equals(own)
		}
		if base, ok := e.base.paths[name]; ok {
			label.Paths = append(label.Paths, e.fromObject(base))
			if regex := e.equals(base); regex != nil {
				label.Regex = regex
			}
		}
		fixed, isFixed := e.base.fixed[name]
		switch {
		case len(label.Paths) == 0:
			label.Value = &fixed
		case isFixed:
			label.Default = &fixed
		}
		if len(label.Paths) == 1 {
			label.Path, label.Paths = label.Paths[0], nil
		}
		out = append(out, label)
	}
	return out
}
