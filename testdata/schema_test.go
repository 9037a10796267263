package testdata_test

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"time"
)

// node is a structural schema with the features that these CRDs use. The API server validates the CRDs and
// objects, too. These checks find mistakes without an API server.
type node struct {
	Description     string
	Type            string
	Format          string
	Properties      map[string]*node
	Additional      *node `json:"additionalProperties"`
	Items           *node
	Required        []string
	Enum            []any
	Pattern         string
	Nullable        bool
	Default         any
	Minimum         *float64
	Maximum         *float64
	MinLength       int
	MaxLength       *int
	IntOrString     bool `json:"x-kubernetes-int-or-string"`
	PreserveUnknown bool `json:"x-kubernetes-preserve-unknown-fields"`
}

// problems returns the schema violations in value, each prefixed with its path.
func (n *node) problems(path string, value any) []string {
	if value == nil {
		if n.Nullable {
			return nil
		}
		return []string{path + ": null, but not nullable"}
	}
	if found := n.typeProblem(value); found != "" {
		return []string{path + ": " + found}
	}
	var found []string
	if len(n.Enum) > 0 && !slices.Contains(n.Enum, value) {
		found = append(found, fmt.Sprintf("%s: %v is not one of %v", path, value, n.Enum))
	}
	switch v := value.(type) {
	case map[string]any:
		found = append(found, n.objectProblems(path, v)...)
	case []any:
		for i, item := range v {
			found = append(found, n.Items.problems(fmt.Sprintf("%s[%d]", path, i), item)...)
		}
	case string:
		found = append(found, n.stringProblems(path, v)...)
	case int64:
		found = append(found, n.rangeProblems(path, float64(v))...)
	case float64:
		found = append(found, n.rangeProblems(path, v)...)
	}
	return found
}

// typeProblem describes how the value's JSON type differs from the schema's.
func (n *node) typeProblem(value any) string {
	kind := map[bool]string{}
	switch v := value.(type) {
	case map[string]any:
		kind[n.Type == "object"] = "an object"
	case []any:
		kind[n.Type == "array"] = "an array"
	case bool:
		kind[n.Type == "boolean"] = "a boolean"
	case string:
		kind[n.Type == "string" || n.IntOrString] = "a string"
	case float64:
		kind[n.Type == "number"] = "a fraction"
	case int64:
		kind[n.Type == "integer" || n.Type == "number" || n.IntOrString] = "an integer"
		if n.Format == "int32" && (v < math.MinInt32 || v > math.MaxInt32) {
			return fmt.Sprintf("%d does not fit an int32", v)
		}
	default:
		return fmt.Sprintf("cannot hold a %T", value)
	}
	if wrong, ok := kind[false]; ok {
		return fmt.Sprintf("is %s, want type %q", wrong, n.Type)
	}
	return ""
}

// objectProblems checks that all required fields and all fields with defaults are set, and no unknown ones.
// Therefore an API server adds no fields to spec and status, and reads from files and from a server are
// equal.
func (n *node) objectProblems(path string, object map[string]any) []string {
	var found []string
	for _, name := range n.Required {
		if _, ok := object[name]; !ok {
			found = append(found, fmt.Sprintf("%s: required field %q is missing", path, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		if _, ok := object[name]; !ok && n.Properties[name].Default != nil {
			found = append(found, fmt.Sprintf("%s: field %q has a default, so spell it out", path, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		at := path + "." + name
		switch {
		case n.Properties[name] != nil:
			found = append(found, n.Properties[name].problems(at, object[name])...)
		case n.Additional != nil:
			found = append(found, n.Additional.problems(at, object[name])...)
		case !n.PreserveUnknown:
			found = append(found, at+": unknown field, the API server would prune it")
		}
	}
	return found
}

// stringProblems checks pattern, format and length.
func (n *node) stringProblems(path, s string) []string {
	var found []string
	if n.Pattern != "" && !regexp.MustCompile(n.Pattern).MatchString(s) {
		found = append(found, fmt.Sprintf("%s: %q does not match %s", path, s, n.Pattern))
	}
	if n.Format == "date-time" {
		if _, err := time.Parse(time.RFC3339Nano, s); err != nil {
			found = append(found, fmt.Sprintf("%s: %v", path, err))
		}
	}
	if len(s) < n.MinLength || (n.MaxLength != nil && len(s) > *n.MaxLength) {
		found = append(found, fmt.Sprintf("%s: %q has %d bytes", path, s, len(s)))
	}
	return found
}

// rangeProblems checks minimum and maximum.
func (n *node) rangeProblems(path string, v float64) []string {
	if (n.Minimum != nil && v < *n.Minimum) || (n.Maximum != nil && v > *n.Maximum) {
		return []string{fmt.Sprintf("%s: %v is out of range", path, v)}
	}
	return nil
}

// untidy lists the fields below spec and status that have no description or no type.
func (n *node) untidy(path string) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		child, at := n.Properties[name], path+"."+name
		if child.Description == "" {
			found = append(found, at+": has no description")
		}
		found = append(found, child.untidy(at)...)
	}
	if n.Type == "" && !n.IntOrString {
		found = append(found, path+": has no type")
	}
	if n.Items != nil {
		found = append(found, n.Items.untidy(path+"[*]")...)
	}
	if n.Additional != nil {
		found = append(found, n.Additional.untidy(path+".*")...)
	}
	return found
}
