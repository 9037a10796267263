package imports

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/crdcache/crdcache/internal/naming"
)

var invalidInLabel = regexp.MustCompile(`[^a-zA-Z0-9_]`)

// labelName returns the name of a label as kube-state-metrics writes it. A name that begins or ends with *
// makes a label of each entry of a map.
func labelName(name string) string {
	if prefix, ok := strings.CutSuffix(name, "*"); ok {
		return invalidInLabel.ReplaceAllString(prefix, "_") + "*"
	}
	if strings.HasPrefix(name, "*") {
		return "*"
	}
	return invalidInLabel.ReplaceAllString(name, "_")
}

// objectPath returns a path from the object in crdcache's language, and elementPath one from an element.
func (e *metricSource) objectPath(p pathNode) string { return "$" + e.steps(p) }

func (e *metricSource) elementPath(p pathNode) string {
	if steps := e.steps(p); steps != "" {
		return "@" + steps
	}
	return "@"
}

var identifierPattern = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func (e *metricSource) steps(p pathNode) string {
	var b strings.Builder
	for k, segment := range p.segments {
		lookupText, isFilter := strings.CutPrefix(segment, "[")
		lookupText, isClosed := strings.CutSuffix(lookupText, "]")
		name, value, isEquation := strings.Cut(lookupText, "=")
		_, err := strconv.Atoi(segment)
		switch {
		case isFilter && isClosed && isEquation:
			fmt.Fprintf(&b, "[?(%s)]", lookupCondition(name, value))
		case isFilter && isClosed:
			e.fail(p.node, fmt.Sprintf("%s is not a list look-up", segment), "write [key=value]")
		case isEquation && k == len(p.segments)-1:
			b.WriteString(pathStep(name)) // see readEquality
		case isEquation:
			e.fail(p.node, fmt.Sprintf("%s has no counterpart before the end of a path", segment),
				"end the path there, or write [key=value] for the elements of a list")
		case err == nil:
			fmt.Fprintf(&b, "[%s]", segment)
		default:
			b.WriteString(pathStep(segment))
		}
	}
	return b.String()
}

func pathStep(name string) string {
	if identifierPattern.MatchString(name) {
		return "." + name
	}
	return "[" + strconv.Quote(name) + "]"
}

// lookupCondition returns the condition of a list look-up. kube-state-metrics compares numbers and booleans
// as such, and takes true and yes for 1, and false, no and unknown for 0.
func lookupCondition(name, value string) string {
	field := "@" + pathStep(name)
	literals := []string{strconv.Quote(value)}
	equal := []string{}
	switch strings.ToLower(value) {
	case "true", "yes", "1":
		equal = []string{`"True"`, `"true"`, `"Yes"`, `"yes"`, `"1"`, "true", "1"}
	case "false", "no", "unknown", "0":
		equal = []string{`"False"`, `"false"`, `"No"`, `"no"`, `"Unknown"`, `"unknown"`, `"0"`, "false", "0"}
	default:
		if _, err := strconv.ParseFloat(value, 64); err == nil {
			equal = []string{value}
		}
	}
	literals = naming.AppendMissing(literals, equal...)
	return field + "==" + strings.Join(literals, " || "+field+"==")
}

// readEquality makes a label read a path that ends in name=value: only this text counts.
func (e *metricSource) readEquality(label *importedValue, p pathNode) {
	if len(p.segments) == 0 {
		return
	}
	last := p.segments[len(p.segments)-1]
	_, value, ok := strings.Cut(last, "=")
	if !ok || strings.HasPrefix(last, "[") {
		return
	}
	label.Type, label.Format, label.Regex = "String", "", map[string]string{"match": "^" + regexp.QuoteMeta(value) + "$"}
}

// metadataText matches the paths to fields of metadata that are always text.
var metadataText = regexp.MustCompile(`^\$\.metadata(\.name|\.namespace|\.uid|\.creationTimestamp|\.(labels|annotations)(\..+|\[.+\]))$`)

func canBeContainer(path string) bool { return !metadataText.MatchString(path) }

// existsCondition returns the condition that one of the paths has a value. existsFilter returns the filter
// that selects the elements for which the condition holds.
func (e *metricSource) existsCondition(paths []pathNode) string {
	conditions := make([]string, len(paths))
	for k, p := range paths {
		conditions[k] = e.elementPath(p)
		isText := !canBeContainer("$" + conditions[k][1:])
		if !isText && !strings.Contains(conditions[k], "[?") { // such a path can have several values
			conditions[k] = "(" + conditions[k] + " && " + conditions[k] + "!=null)"
		}
	}
	return strings.Join(conditions, " || ")
}

func (e *metricSource) existsFilter(paths []pathNode) string {
	return "[?(" + e.existsCondition(paths) + ")]"
}
