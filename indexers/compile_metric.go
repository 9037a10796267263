package indexers

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/crdcache/crdcache/indexers/internal/sortkey"
	"github.com/crdcache/crdcache/internal/expression"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

// reservedMetricPrefix is the prefix of the names of crdcache's own metrics.
const reservedMetricPrefix = "crdcache_"

// metricPrefix is the prefix of the names of metric indexes. No index of a config can have it.
const metricPrefix = "metrics/"

// compileMetric compiles one metric of a resource. names counts the metrics of a name in the resource.
func (d *decoder) compileMetric(form *metricForm, r *Resource, names map[string]int) (*Metric, bool) {
	metric := &Metric{Name: form.Name.value, Help: form.Help.value, function: form.Function.value,
		limit: cmp.Or(form.Limit.value, defaultMaxSeries), position: d.file.positionOf(form.Name.node)}
	if strings.HasPrefix(metric.Name, reservedMetricPrefix) {
		d.failAt(codeUnknownValue, form.Name.node, fmt.Sprintf("the name of a metric cannot be %q", metric.Name),
			"choose a name that does not begin with "+reservedMetricPrefix)
	}
	if r.Storage.Mode == "None" {
		d.failAt(codeContradict, form.node, "storage mode None stores no objects to count",
			"use another storage mode, or remove the metric")
		return nil, false
	}
	if form.Index.node != nil {
		return metric, d.setMetricIndex(form.Index, r, metric)
	}
	names[metric.Name]++
	index := &Index{
		Name:          metricPrefix + metric.Name,
		maxValues:     math.MaxInt, // the size of an object bounds its values
		maxValueBytes: math.MaxInt,
		eachOfLists:   form.Each.node != nil,
	}
	if n := names[metric.Name]; n > 1 {
		index.Name += fmt.Sprintf("~%d", n)
	}
	metric.Index, metric.ownsIndex = index, true
	p := pathCompiler{decoder: d, relativeToEach: form.Each.node != nil}
	if index.each, index.eachOrigin = p.compileEach(form.Each); index.each != nil {
		index.containers = index.each.Containers()
	}
	index.when, index.whenCEL, index.whenOrigin = d.compileCondition(&form.conditionForm)
	used := map[string]string{}
	p.compileLabels(form.Labels.items, metric, used)
	switch form.chosenFields[0] {
	case "value":
		p.compileValue(&form.Value.partForm, metric)
	case "states":
		p.compileStates(&form.States, metric, used)
	}
	if len(index.parts) == 0 { // one value for all objects
		index.parts = []indexPart{{constant: true, missing: missingRule{kind: missingValue}}}
	}
	d.checkMissingValues(index)
	d.reportImpossible(index)
	return metric, index.complete() && (index.each != nil || !p.relativeToEach)
}

// setMetricIndex makes a metric count the objects of each value of a declared index.
func (d *decoder) setMetricIndex(field textField, r *Resource, metric *Metric) bool {
	index, ok := r.Index(field.value)
	if !ok {
		names := naming.Texts(r.Indexes, func(index *Index) string { return index.Name })
		if field.value != "" {
			d.failAt(codeUnknownValue, field.node, fmt.Sprintf("the resource has no index %q", field.value),
				didYouMean(field.value, names, "name an index of this resource, or write labels: with paths"))
		}
		return false
	}
	metric.Index = index
	labels := index.Keys
	if labels == nil {
		labels = []string{index.Name}
	}
	for part, name := range labels {
		if !textRules["labelName"].compile().MatchString(name) {
			d.failAt(codeName, field.node, fmt.Sprintf("%q cannot be the name of a label", name),
				"rename it in the index, or write labels: with paths")
			return false
		}
		metric.labels = append(metric.labels, metricLabel{name: name, part: part})
	}
	return index.complete()
}

func (p pathCompiler) compileLabels(forms []labelForm, metric *Metric, used map[string]string) {
	var parts []indexPart
	for i := range forms {
		form := &forms[i]
		p.checkUnique(used, "label", form.Name)
		name, isMap := strings.CutSuffix(form.Name.value, "*")
		label := metricLabel{name: name, entries: isMap, part: noPart}
		chosen := form.chosenFields[0]
		if isMap && (chosen == "value" || chosen == "elementKey" || chosen == "cel") {
			p.failAt(codeContradict, form.Name.node, fmt.Sprintf("%q is a text, not a map", chosen), "remove the * from the name")
		}
		part := indexPart{name: form.Name.value}
		switch chosen {
		case "":
			continue
		case "value":
			label.fixed = form.Value.value
			metric.labels, parts = append(metric.labels, label), append(parts, part)
			continue
		case "elementKey":
			part.sources = p.compileElementKey(form, metric.Index)
		default:
			part = p.compileSingleValue(&form.partForm)
			part.name = form.Name.value
		}
		part.label = true
		for n := range part.sources {
			if source := &part.sources[n]; source.kind == readScalar {
				source.kind = form.sourceKind(isMap)
			}
		}
		label.object = p.objectField(part)
		metric.perObject = metric.perObject || label.object == objectName
		if form.Missing.node == nil && !form.Default.isSet {
			part.missing.kind = missingNull // the label is empty
		}
		metric.labels, parts = append(metric.labels, label), append(parts, part)
	}
	// The name and the namespace of a series for each object are read from the object's key.
	for n := range metric.labels {
		label := &metric.labels[n]
		if label.object != noField && metric.perObject {
			continue
		}
		label.object = noField
		if parts[n].sources != nil || parts[n].cel != nil {
			label.part = len(metric.Index.parts)
			metric.Index.addPart(parts[n])
		}
	}
	// Entries of maps come last, so that they do not replace other labels. If two maps have the same label,
	// the map with the longer prefix wins.
	slices.SortStableFunc(metric.labels, func(a, b metricLabel) int {
		if a.entries && b.entries {
			return strings.Compare(b.name, a.name)
		}
		return map[bool]int{true: 1}[a.entries] - map[bool]int{true: 1}[b.entries]
	})
}

// sourceKind returns how the values of a label's paths are read.
func (f *labelForm) sourceKind(isMap bool) sourceKind {
	switch printed := f.Format.value == "Go"; {
	case printed && isMap:
		return readPrintedEntries
	case printed:
		return readPrinted
	case isMap:
		return readEntries
	}
	return readScalar
}

// compileSingleValue compiles a part with at most one value. Of the elements that a filter selects, the first
// counts.
func (p pathCompiler) compileSingleValue(f *partForm) indexPart {
	part := p.compilePart(f)
	part.single = true
	if part.cel != nil && part.cel.Result() == expression.List {
		p.failAt(codeMultiValued, part.celOrigin.node, "an expression in a metric can have only one value",
			"select an element, as in self.spec.hosts[0].name")
		part.cel = nil
	}
	for n := range part.sources {
		source := &part.sources[n]
		for _, step := range source.path.Steps() {
			selector := step.Selectors[0].Kind
			switch isSingle := !step.Recursive && len(step.Selectors) == 1; {
			case isSingle && selector == jsonpath.SelectFilter:
				source.first = true
			case !isSingle || selector > jsonpath.SelectIndex:
				p.fail(codeMultiValued, source.origin.position(p.file, step.Offset, step.End),
					"a path in a metric can have only one value", "write each: for the elements, and paths within an element")
				part.sources = nil
				return part
			}
		}
	}
	return part
}

// objectField returns the field of an object's key that a part reads unchanged.
func (p pathCompiler) objectField(part indexPart) objectField {
	if len(part.sources) != 1 || len(part.transforms) > 0 || part.missing.kind != missingSkip ||
		p.relativeToEach && !part.sources[0].root ||
		part.sources[0].kind != readScalar && part.sources[0].kind != readPrinted {
		return noField
	}
	switch part.sources[0].path.String() {
	case namePath.String():
		return objectName
	case namespacePath.String():
		return objectNamespace
	}
	return noField
}

func (p pathCompiler) compileElementKey(f *labelForm, index *Index) []valuePath {
	switch {
	case !f.ElementKey.value:
		p.failAt(codeUnknownValue, f.node, `"elementKey" cannot be false`, "write true, or a path")
	case !p.relativeToEach:
		p.failAt(codeContradict, f.node, `"elementKey" without "each" has no meaning`, "add each: with a path such as .status.parts.*")
	case index.each != nil && index.containers == nil:
		p.failAt(codeContradict, index.eachOrigin.node, "the elements have no keys", "end the path in .* for the members of a map")
	}
	return []valuePath{{path: jsonpath.FromSegments(), kind: readElementKey,
		origin: origin{node: f.Name.node, wholeNodeOnly: true}}}
}

// compileValue compiles the value of a metric as the last part of its index. Its keys are decimal numbers.
func (p pathCompiler) compileValue(form *partForm, metric *Metric) {
	part := p.compileSingleValue(form)
	convert, ok := numbers[part.typ]
	if !ok {
		p.failAt(codeUnknownValue, form.Type.node, fmt.Sprintf("values of type %s are not numbers", part.typ),
			"use Int, Number, Bool, Quantity, Duration, Time or Date, or a label for the text")
		return
	}
	part.transforms = append(part.transforms, transform{name: "number " + part.typ.String(),
		apply: func(text string) (string, bool) {
			number, ok := convert(text)
			if _, err := strconv.ParseFloat(number, 64); !ok || err != nil { // err: it is beyond the range
				return notNumber, true
			}
			return number, true
		}})
	part.typ = sortkey.Number
	metric.function = cmp.Or(metric.function, "Sum")
	metric.Index.combine = metric.function
	metric.hasValue = true
	metric.Index.addPart(part)
}

// compileStates compiles a state set as the last part of an index.
func (p pathCompiler) compileStates(f *statesForm, m *Metric, used map[string]string) {
	p.checkUnique(used, "label", f.Name)
	m.stateLabel, m.states = f.Name.value, textsOf(f.Values)
	if strings.HasSuffix(m.stateLabel, "*") {
		p.failAt(codeName, f.Name.node, "a state is a text, not a map", "remove the * from the name")
	}
	states := map[string]string{}
	for _, state := range f.Values.items {
		p.checkUnique(states, "state", state)
	}
	m.hasValue = true
	m.Index.addPart(p.compileSingleValue(&f.partForm))
}

func (i *Index) addPart(part indexPart) {
	i.Keys, i.parts = append(i.Keys, part.name), append(i.parts, part)
}
