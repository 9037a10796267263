package outline

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/crdcache/crdcache/internal/display"
)

// Change is a changed field.
type Change struct {
	// Path is the path of the field, with indexes of list elements, in the outline of the object after
	// the change. For a removed field it is the path in the outline before the change.
	Path string `json:"path"`
	// Label is the displayed path. It has list elements by identity, as in [type=Ready].
	Label string `json:"label"`
	// Op is added, removed or changed.
	Op string `json:"op"`
	// Before and After are the values as JSON, possibly truncated.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// By has the field managers of the change that managedFields show.
	By []Manager `json:"by,omitempty"`
}

const (
	maxChangedFields = 200
	maxValueBytes    = 400
)

// fieldComparison matches list elements by the keys of most types with listType=map.
var fieldComparison = display.Comparison{
	IdentityFields: []string{"type", "name", "key", "id", "uid", "ip", "containerPort", "port", "topologyKey",
		"devicePath", "mountPath"},
	Ignore: func(path []display.Step) bool {
		return len(path) == 2 && path[0].Key == "metadata" &&
			(path[1].Key == "managedFields" || path[1].Key == "resourceVersion")
	},
}

// Changes compares two states of an object. more is the number of omitted changes. It ignores
// managedFields and the resource version, which every write changes. If before or after is nil, there are no
// changes.
func Changes(before, after map[string]any) (fields []Change, more int) {
	if before == nil || after == nil {
		return nil, 0
	}
	managers := readManagers(before, after)
	for _, c := range fieldComparison.Changes(before, after) {
		if len(fields) == maxChangedFields {
			more++
			continue
		}
		f := Change{Op: "changed", By: managers.changedBy(c)}
		f.Path, f.Label = pathAndLabel(c.Path)
		if c.HasOld {
			f.Before = formatValue(c.Old)
		} else {
			f.Op = "added"
		}
		if c.HasNew {
			f.After = formatValue(c.New)
		} else {
			f.Op = "removed"
		}
		fields = append(fields, f)
	}
	return fields, more
}

func pathAndLabel(steps []display.Step) (path, label string) {
	var b strings.Builder
	for _, s := range steps {
		switch {
		case s.Index < 0:
			path = JoinPath(path, s.Key)
			b.WriteString(JoinPath("", s.Key))
			continue
		case s.IdentityField != "":
			id := s.Element.(map[string]any)[s.IdentityField]
			b.WriteString("[" + s.IdentityField + "=" + truncateValue(id, 80) + "]")
		default:
			b.WriteString("[" + strconv.Itoa(s.Index) + "]")
		}
		path = JoinPath(path, strconv.Itoa(s.Index))
	}
	return path, b.String()
}

func formatValue(v any) string {
	if text, ok := v.(string); ok {
		return truncate(yamlScalar(text), maxValueBytes)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return truncate(string(out), maxValueBytes)
}

func truncateValue(v any, maxLength int) string {
	if text, ok := v.(string); ok {
		return truncate(text, maxLength)
	}
	return truncate(formatValue(v), maxLength)
}

// truncate shortens a text to maxLength bytes at the boundary of a character.
func truncate(text string, maxLength int) string {
	if len(text) <= maxLength {
		return text
	}
	for maxLength > 0 && !utf8.RuneStart(text[maxLength]) {
		maxLength--
	}
	return text[:maxLength] + "…"
}
