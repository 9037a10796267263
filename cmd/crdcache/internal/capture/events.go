package capture

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Events are served twice, with other names of some fields. What is left out of one is left out of the other.
var (
	events      = []schema.GroupResource{{Resource: "events"}, {Group: "events.k8s.io", Resource: "events"}}
	eventFields = [][2]string{
		{"message", "note"}, {"involvedObject", "regarding"}, {"source", "deprecatedSource"}, {"count", "deprecatedCount"},
		{"firstTimestamp", "deprecatedFirstTimestamp"}, {"lastTimestamp", "deprecatedLastTimestamp"}, {"reportingComponent", "reportingController"},
	}
)

// twins adds to events those of the other group, and their paths by the other names.
func twins(what Redaction, of []schema.GroupResource) (Redaction, []schema.GroupResource) {
	if !slices.ContainsFunc(of, func(gr schema.GroupResource) bool { return slices.Contains(events, gr) }) {
		return what, of
	}
	of = slices.Clone(of)
	for _, gr := range events {
		if !slices.Contains(of, gr) {
			of = append(of, gr)
		}
	}
	given := what.Paths
	what.Paths = slices.Clone(given)
	for _, path := range given {
		if other := otherEventField(path); other != "" && !slices.Contains(what.Paths, other) {
			what.Paths = append(what.Paths, other)
		}
	}
	return what, of
}

// firstField is the beginning of a path with the name of a field: .name or ['name'].
var firstField = regexp.MustCompile(`^\$?(\.|\.?\[["'])([A-Za-z]+)(["']\]|$|[.\[])`)

// otherEventField is a path of events by the name that its field has in the other group; empty where it has none.
func otherEventField(path string) string {
	at := firstField.FindStringSubmatchIndex(path)
	if at == nil {
		return ""
	}
	name := path[at[4]:at[5]]
	for _, both := range eventFields {
		for i := range both {
			if name == both[i] {
				return path[:at[4]] + both[1-i] + path[at[5]:]
			}
		}
	}
	return ""
}
