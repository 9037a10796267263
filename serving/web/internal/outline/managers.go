package outline

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/crdcache/crdcache/internal/display"
)

// Manager is a field manager.
type Manager struct {
	Name string `json:"name"`
	// Operation is Apply or Update.
	Operation string `json:"operation,omitempty"`
	// Subresource is, for example, "status". It is empty for the object itself.
	Subresource string `json:"subresource,omitempty"`
	// Time is the time of the last write, in seconds.
	Time string `json:"time,omitempty"`
}

type managerEntry struct {
	Manager
	fields         map[string]any // fieldsV1
	previousFields map[string]any // fieldsV1 before the change
	isChanged      bool           // the entry has changed
}

type managers []managerEntry

// readManagers returns the managers after a change. It compares their entries with the entries before the
// change.
func readManagers(before, after map[string]any) managers {
	beforeEntries := parseManagers(before)
	afterEntries := parseManagers(after)
	for i, m := range afterEntries {
		j := slices.IndexFunc(beforeEntries, func(o managerEntry) bool {
			return o.Name == m.Name && o.Operation == m.Operation && o.Subresource == m.Subresource
		})
		if j < 0 {
			afterEntries[i].isChanged = true
			continue
		}
		afterEntries[i].previousFields = beforeEntries[j].fields
		afterEntries[i].isChanged = beforeEntries[j].Time != m.Time ||
			!reflect.DeepEqual(beforeEntries[j].fields, m.fields)
	}
	return afterEntries
}

func parseManagers(object map[string]any) managers {
	metadata, _ := object["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	var parsed managers
	for _, item := range list {
		entry, _ := item.(map[string]any)
		text := func(key string) string { s, _ := entry[key].(string); return s }
		fields, _ := entry["fieldsV1"].(map[string]any)
		if name := text("manager"); name != "" {
			parsed = append(parsed, managerEntry{
				Manager: Manager{Name: name, Operation: text("operation"), Subresource: text("subresource"),
					Time: text("time")},
				fields: fields,
			})
		}
	}
	return parsed
}

// changedBy returns the managers that changed a field: they wrote, and they own the field or owned it before.
// Entries have times in seconds, so the second of two quick writes can be missing. Then it returns the owner
// that wrote last.
func (m managers) changedBy(c display.Change) []Manager {
	var owningWriters, owners []Manager
	for _, entry := range m {
		ownsField := ownsPath(entry.fields, c.Path) || !c.HasNew && ownsPath(entry.previousFields, c.Path)
		switch {
		case ownsField && entry.isChanged:
			owningWriters = append(owningWriters, entry.Manager)
		case ownsField && (len(owners) == 0 || entry.Time > owners[0].Time):
			owners = []Manager{entry.Manager}
		}
	}
	if len(owningWriters) > 0 {
		return owningWriters
	}
	if len(owners) > 0 {
		return owners
	}
	var writers []Manager
	for _, entry := range m {
		if entry.isChanged {
			writers = append(writers, entry.Manager)
		}
	}
	// The server changes fields without an owner, such as the generation, on a write.
	if len(writers) == 1 {
		return writers
	}
	return nil
}

// ownsPath reports whether fields contain a path, or a parent of the path that is owned atomically.
func ownsPath(fields map[string]any, path []display.Step) bool {
	if fields == nil {
		return false
	}
	for i, s := range path {
		if len(fields) == 0 {
			return i > 0 // the value is owned atomically
		}
		children, ok := childFields(fields, s)
		if !ok {
			return false
		}
		fields = children
	}
	return true
}

func childFields(fields map[string]any, step display.Step) (map[string]any, bool) {
	if step.Index < 0 {
		children, ok := fields["f:"+step.Key].(map[string]any)
		return children, ok
	}
	for name, value := range fields {
		kind, text, _ := strings.Cut(name, ":")
		children, ok := value.(map[string]any)
		if !ok || !matchesPathElement(kind, text, step) {
			continue
		}
		return children, true
	}
	return nil, false
}

// matchesPathElement reports whether an element of a fieldsV1 path selects the list element in step.
func matchesPathElement(kind, text string, step display.Step) bool {
	switch kind {
	case "i":
		return text == strconv.Itoa(step.Index)
	case "v":
		out, err := json.Marshal(step.Element)
		return err == nil && string(out) == text
	case "k":
		var keys map[string]any
		element, ok := step.Element.(map[string]any)
		if !ok || json.Unmarshal([]byte(text), &keys) != nil {
			return false
		}
		for name, keyValue := range keys {
			elementValue := element[name]
			if n, ok := elementValue.(int64); ok {
				elementValue = float64(n)
			}
			if elementValue == nil || !reflect.DeepEqual(elementValue, keyValue) {
				return false
			}
		}
		return true
	}
	return false
}
