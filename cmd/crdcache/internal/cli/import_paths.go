package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
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

// fromObject returns a path from the object in crdcache's language, and relative one from an element.
func (e *each) fromObject(p pathNode) string { return "$" + e.steps(p) }

func (e *each) relative(p pathNode) string {
	if steps := e.steps(p); steps != "" {
		return "@" + steps
	}
	return "@"
}

var identifier = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// steps converts the segments of a path.
func (e *each) steps(p pathNode) string {
	var b strings.Builder
	for k, segment := range p.segments {
		inner, isFilter := strings.CutPrefix(segment, "[")
		inner, isClosed := strings.CutSuffix(inner, "]")
		name, value, isEquation := strings.Cut(inner, "=")
		_, err := strconv.Atoi(segment)
		switch {
		case isFilter && isClosed && isEquation:
			fmt.Fprintf(&b, "[?(%s)]", equation(name, value))
		case isFilter && isClosed:
			e.fail(p.node, fmt.Sprintf("%s is not a list look-up", segment), "write [key=value]")
		case isEquation && k == len(p.segments)-1:
			b.WriteString(step(name)) // see equals
		case isEquation:
			e.fail(p.node, fmt.Sprintf("%s has no counterpart before the end of a path", segment),
				"end the path there, or write [key=value] for the elements of a list")
		case err == nil:
			fmt.Fprintf(&b, "[%s]", segment)
		default:
			b.WriteString(step(segment))
		}
	}
	return b.String()
}

func step(name string) string {
	if identifier.MatchString(name) {
		return "." + name
	}
	return "[" + strconv.Quote(name) + "]"
}

// equation returns the condition of a list look-up, which compares numbers and booleans as such.
func equation(name, value string) string {
	field := "@" + step(name)
	out := field + "==" + strconv.Quote(value)
	if _, err := strconv.ParseFloat(value, 64); err == nil || value == "true" || value == "false" {
		out += " || " + field + "==" + value
	}
	return out
}

// equals returns the transform of a path that ends in name=value: only this value counts.
func (e *each) equals(p pathNode) *importedRegex {
	if len(p.segments) == 0 {
		return nil
	}
	last := p.segments[len(p.segments)-1]
	_, value, ok := strings.Cut(last, "=")
	if !ok || strings.HasPrefix(last, "[") {
		return nil
	}
	return &importedRegex{Match: "^" + regexp.QuoteMeta(value) + "$"}
}

// exists returns the condition that one of the paths has a value, and filter the elements for which it holds.
func (e *each) exists(paths []pathNode) string {
	tests := make([]string, len(paths))
	for k, p := range paths {
		tests[k] = e.relative(p)
	}
	return strings.Join(tests, " || ")
}

func (e *each) filter(paths []pathNode) string { return "[?(" + e.exists(paths) + ")]" }
